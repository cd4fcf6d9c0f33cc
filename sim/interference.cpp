#include "sim/interference.hpp"

namespace epocast {

bool Interference::slows(Instance i) const {
  const Task& task = graph_.task(i.task);
  return !devices_.empty() && std::holds_alternative<Compute>(task.work) && task.queue != QueueId::none &&
         graph_.graph->queue(task.queue).role == QueueRole::compute;
}

double Interference::begins(Instance i, double work, double now) {
  DeviceState& here = state(graph_.device(i));
  const double due = durations_.end_of(i, now, work / speed(here));
  here.running.push_back({i, work, now, due});
  return due;
}

bool Interference::ends(Instance i, double now) {
  std::vector<Running>& running = state(graph_.device(i)).running;
  const auto found = std::ranges::find_if(running, [&](const Running& r) { return same(r.instance, i); });
  // As the engine has it, which calls early by as much and no more: else nobody would come back for it.
  if (found == running.end() || found->due > now + SimEngine::tolerance(now)) return false;
  running.erase(found);
  return true;
}

Interference::Taken Interference::taken(const DeviceState& state) {
  double kernels = 0, rate = 0;
  for (const Moving& moving : state.moving) {
    kernels = std::max(kernels, moving.load.kernels);  // the same multiprocessors move all
    if (moving.load.work > 0) rate += moving.load.rate;
  }
  const double left = std::max(0.0, kMost - kernels);
  return {kernels + std::min(rate, left), rate > left ? left / rate : 1};
}

/// What processors have done for messages since they were last looked at.
void Interference::work_off(DeviceState& state, double now) {
  const double share = taken(state).done, time = now - state.since;
  for (Moving& moving : state.moving) {
    const double rate = moving.load.rate * share;
    // The engine calls early by as much and no more.
    const bool is_done = moving.load.work <= rate * (time + SimEngine::tolerance(now));
    moving.load.work = is_done ? 0 : moving.load.work - rate * time;
  }
  state.since = now;
}

double Interference::next_paid(const DeviceState& state) {
  const double done = taken(state).done;
  double next = std::numeric_limits<double>::infinity();
  for (const Moving& moving : state.moving)
    if (moving.load.work > 0 && done > 0)
      next = std::min(next, state.since + moving.load.work / (moving.load.rate * done));
  return next;
}

bool Interference::folds(const CyclicTaskGraph& graph) {
  return std::ranges::all_of(graph.groups(),
                             [&](const Group& group) { return group.devices == graph.groups().front().devices; });
}

}  // namespace epocast
