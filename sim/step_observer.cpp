#include "sim/step_observer.hpp"

#include <cmath>
#include <numeric>

namespace epocast {

StepObserver::StepObserver(const ActivityAccounts& accounts, std::vector<CountedDevice> workers, double start)
    : accounts_(accounts), workers_(std::move(workers)) {
  iteration_ended(start);
}

void StepObserver::iteration_ended(double now) {
  Snapshot snapshot{.time = now};
  for (const auto& [worker, count] : workers_) {
    const ActivityTimes times = accounts_.times(worker, now);
    snapshot.compute += count * times.compute();
    snapshot.communication += count * times.communication();
    snapshot.exposed += count * times.communication_only;
  }
  snapshots_.push_back(snapshot);
}

StepMetrics StepObserver::window(std::int64_t iterations) const {
  const Snapshot& last = snapshots_.back();
  const Snapshot& first = snapshots_[snapshots_.size() - 1 - static_cast<std::size_t>(iterations)];
  double workers = 0;
  for (const CountedDevice& worker : workers_) workers += worker.count;
  const double scale = workers_.empty() ? 0 : 1 / (static_cast<double>(iterations) * workers);
  StepMetrics metrics;
  metrics.compute = (last.compute - first.compute) * scale;
  metrics.communication = (last.communication - first.communication) * scale;
  metrics.exposed_communication = (last.exposed - first.exposed) * scale;
  return metrics;
}

std::pair<double, double> StepObserver::mean_iteration(std::int64_t iterations) const {
  const auto used = static_cast<std::size_t>(iterations);
  const std::size_t first = snapshots_.size() - 1 - used;
  const double mean = (snapshots_.back().time - snapshots_[first].time) / static_cast<double>(used);
  // Batch means (Law and Carson 1979): 20 batches are long enough to be nearly independent; t(0.975, 19) = 2.093.
  constexpr std::size_t kBatches = 20;
  const std::size_t size = used / kBatches;
  if (size == 0) return {mean, 0};
  std::vector<double> batch(kBatches);
  for (std::size_t b = 0; b < kBatches; ++b)
    batch[b] =
        (snapshots_[first + (b + 1) * size].time - snapshots_[first + b * size].time) / static_cast<double>(size);
  const double batch_mean = std::accumulate(batch.begin(), batch.end(), 0.0) / kBatches;
  double square = 0;
  for (const double b : batch) square += (b - batch_mean) * (b - batch_mean);
  return {mean, 2.093 * std::sqrt(square / (kBatches - 1) / kBatches)};
}

}  // namespace epocast
