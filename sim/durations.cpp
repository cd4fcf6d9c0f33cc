#include "sim/durations.hpp"

#include <algorithm>
#include <cmath>

namespace epocast {
namespace {

/// An average should see this many repetitions of what is periodic.
constexpr double kPeriodsAtLeast = 10;

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
  const auto& devices = graph_.graph->group(graph_.graph->queue(queue).group).devices;
  return devices[devices.size() == 1 ? 0 : i.rank];
}

double Durations::usual(Instance i) const {
  const DeviceTime& duration = std::get<Compute>(graph_.task(i.task).work).duration;
  double time = (duration.is_same() ? duration.longest() : duration.on(worker(i))).value;
  if (time == 0) return 0;
  if (!options_.slowdown.empty()) time *= options_.slowdown[CyclicTaskGraph::index(worker(i))];
  const QueueId queue = graph_.task(i.task).queue;
  if (queue == QueueId::none) return time;
  const auto& shared = graph_.graph->queue(queue).slowdown;
  return shared.empty() ? time : time * shared[shared.size() == 1 ? 0 : i.rank];
}

double Durations::work(Instance i, std::int64_t iteration) const {
  const double time = usual(i);
  const double parts = std::get<Compute>(graph_.task(i.task).work).parts;
  if (compute_noise_ && parts > 1 && options_.noise.scope == NoiseScope::task)  // a mean of independent factors
    return time *
           NoiseDraws(options_.noise, options_.noise.compute_cv / std::sqrt(parts)).draw(i.task, i.rank, iteration);
  if (compute_noise_) return time * compute_noise_->draw(i.task, i.rank, iteration);
  return options_.noise.any() ? time * options_.noise.factor(i.task, i.rank, iteration) : time;
}

double Durations::end_of(Instance i, double now, double work) const {
  if (options_.slow_devices.empty()) return now + work;
  const DeviceId device = worker(i);
  if (pace_.steady(device)) return now + work;
  return now + (pace_.end_of(device, training_time(now), work) - training_time(now));
}

double Durations::work_between(Instance i, double from, double until) const {
  if (options_.slow_devices.empty()) return until - from;
  return pace_.work_between(worker(i), training_time(from), training_time(until));
}

double Durations::start_of_transfer(Instance i, double now) const {
  const DeviceId device = graph_.device(i);
  if (pace_.steady(device)) return now;
  return now + (pace_.resumes(device, training_time(now)) - training_time(now));
}

double Durations::effective_bytes(Instance i, std::int64_t iteration, Bytes bytes) const {
  return bytes.value * options_.noise.transfer_factor(i.task, i.rank, iteration);
}

double Durations::stopped(DeviceId device) const {
  double since = std::numeric_limits<double>::infinity();
  for (const auto& [slow, window] : options_.slow_devices)
    if (slow == device && std::isinf(window.factor) && std::isinf(window.until)) since = std::min(since, window.from);
  return std::max(0.0, since - elapsed_);
}

}  // namespace epocast
