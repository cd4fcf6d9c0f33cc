#include "sim/durations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.hpp"

namespace epocast {
namespace {

/// An average should see this many repetitions of what is periodic.
constexpr double kPeriodsAtLeast = 10;
/// How often a collective finds another member standing still when the last one goes on, before it gives up.
constexpr int kMostAttempts = 10'000;

}  // namespace

Durations::Durations(const CompiledGraph& graph, const ExecutionOptions& options, std::size_t devices, double start)
    : graph_(graph), options_(options), pace_(options.slow_devices, devices), start_(start), elapsed_(options.elapsed) {
  if (options.noise.compute_cv > 0 && options.noise.kind != NoiseKind::trace)
    compute_noise_.emplace(options.noise, options.noise.compute_cv);
  calm_from_ = std::max(pace_.last_change(), last_change(options.slow_links));
  for (const auto& disturbances : {options.slow_devices, options.slow_links})
    for (const auto& [device, window] : disturbances)
      representative_from_ = std::max(
          representative_from_, window.period > 0 ? std::max(window.from, elapsed_) + kPeriodsAtLeast * window.period
                                                  : last_change({{device, window}}));
}

DeviceId Durations::worker(Instance i) const {
  const QueueId queue = graph_.task(i.task).queue;
  if (queue == QueueId::none) return graph_.device(i);
  return graph_.device_of(graph_.graph->queue(queue).group, i.rank);
}

bool Durations::steady(Instance i) const {
  const QueueId queue = graph_.task(i.task).queue;
  return queue != QueueId::none && graph_.graph->queue(queue).steady;
}

double Durations::usual(Instance i) const {
  const DeviceTime& duration = std::get<Compute>(graph_.task(i.task).work).duration;
  double time = (duration.is_same() ? duration.longest() : duration.on(worker(i))).value;
  if (time == 0) return 0;
  if (!options_.slowdown.empty() && !steady(i)) time *= options_.slowdown[CyclicTaskGraph::index(worker(i))];
  const QueueId queue = graph_.task(i.task).queue;
  if (queue == QueueId::none) return time;
  const auto& shared = graph_.graph->queue(queue).slowdown;
  return shared.empty() ? time : time * shared[shared.size() == 1 ? 0 : i.rank];
}

double Durations::work(Instance i, std::int64_t iteration) const {
  const double time = usual(i);
  if (!(options_.noise.compute_cv > 0)) return time;
  if (options_.noise.by_step()) return time * step_factor(i, iteration);
  const double parts = std::get<Compute>(graph_.task(i.task).work).parts;
  if (parts > 1)  // a mean of independent factors
    return time *
           NoiseDraws(options_.noise, options_.noise.compute_cv / std::sqrt(parts)).draw(i.task, i.rank, iteration);
  return time * compute_noise_->draw(i.task, i.rank, iteration);
}

/// The number of a task's step of training, from 0 on, in an iteration of the graph.
std::int64_t Durations::step_of(const Task& task, std::int64_t iteration) const {
  return iteration * graph_.graph->steps() + task.step;
}

/// What all that a device computes in a step takes longer; of a computation of several steps, their mean.
double Durations::step_factor(Instance i, std::int64_t iteration) const {
  const Task& task = graph_.task(i.task);
  const auto device = static_cast<std::uint32_t>(worker(i));
  const int steps = std::get<Compute>(task.work).steps;
  const std::int64_t first = step_of(task, iteration);
  if (steps > 1) return options_.noise.mean_factor(device, first, steps);
  return compute_noise_ ? compute_noise_->draw(i.task, device, first) : options_.noise.factor(i.task, device, first);
}

double Durations::end_of(Instance i, double now, double work) const {
  if (options_.slow_devices.empty() || steady(i)) return now + work;
  const DeviceId device = worker(i);
  if (pace_.steady(device)) return now + work;
  return now + (pace_.end_of(device, training_time(now), work) - training_time(now));
}

double Durations::work_between(Instance i, double from, double until) const {
  if (options_.slow_devices.empty() || steady(i)) return until - from;
  return pace_.work_between(worker(i), training_time(from), training_time(until));
}

/// Calls visit(device) for the one that sends a message, or all members of a collective.
template <class Visit>
void Durations::for_each_sender(Instance i, Visit visit) const {
  const Task& task = graph_.task(i.task);
  if (const auto* transfer = std::get_if<Transfer>(&task.work)) return visit(graph_.device_of(transfer->from, i.rank));
  const std::vector<DeviceId>& devices = graph_.graph->group(task.ranks).devices;
  task.axis.for_each_rank(i.rank, [&](std::uint32_t rank) { visit(devices[rank]); });
}

/// When a device goes on that stands still; infinite if never.
double Durations::resumes(DeviceId device, double now) const {
  if (pace_.steady(device)) return now;
  return now + (pace_.resumes(device, training_time(now)) - training_time(now));
}

Durations::Departure Durations::departure(Instance i, double now) const {
  Departure found{now, graph_.device(i)};
  if (options_.slow_devices.empty()) return found;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const double date = found.date;
    for_each_sender(i, [&](DeviceId device) {
      if (const double own = resumes(device, date); own > found.date) found = {own, device};
    });
    if (found.date == date || std::isinf(found.date)) return found;  // or else somebody may stand still by then
  }
  throw SimulationError(fmt::format("'{}' never starts: its members stand still in turn, and never work at once",
                                    graph_.task(i.task).label.text()));
}

double Durations::effective_bytes(Instance i, std::int64_t iteration, Bytes bytes) const {
  const NoiseModel& noise = options_.noise;
  return bytes.value * (noise.by_step() ? noise.transfer_factor(i.task, static_cast<std::uint32_t>(graph_.device(i)),
                                                                step_of(graph_.task(i.task), iteration))
                                        : noise.transfer_factor(i.task, i.rank, iteration));
}

double Durations::stopped(DeviceId device) const { return std::max(0.0, pace_.halts(device) - elapsed_); }

}  // namespace epocast
