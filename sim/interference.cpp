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
  const auto found = std::ranges::find_if(
      running, [&](const Running& r) { return r.instance.task == i.task && r.instance.rank == i.rank; });
  // As the engine has it, which calls early by as much and no more: else nobody would come back for it.
  if (found == running.end() || found->due > now + SimEngine::tolerance(now)) return false;
  running.erase(found);
  return true;
}

bool Interference::folds(const CyclicTaskGraph& graph) {
  return std::ranges::all_of(graph.groups(),
                             [&](const Group& group) { return group.devices == graph.groups().front().devices; });
}

}  // namespace epocast
