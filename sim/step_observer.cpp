#include "sim/step_observer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace epocast {

void VersionCounter::write(StoreId store, std::uint32_t rank, bool counts) {
  const std::int64_t staleness = version_[at(store)]++ - read_[at(store)][rank];
  if (!counts) return;
  ++writes_;
  sum_ += static_cast<double>(staleness);
  max_ = std::max(max_, staleness);
}

std::optional<double> VersionCounter::mean() const {
  return writes_ > 0 ? std::optional(sum_ / static_cast<double>(writes_)) : std::nullopt;
}

std::optional<std::int64_t> VersionCounter::max() const { return writes_ > 0 ? std::optional(max_) : std::nullopt; }

StepObserver::StepObserver(const ActivityAccounts& accounts, std::vector<DeviceId> workers, std::size_t history,
                           double start)
    : accounts_(accounts), workers_(std::move(workers)), history_(std::max<std::size_t>(history, 2)) {
  iteration_ended(start);
}

void StepObserver::iteration_ended(double now) {
  Snapshot snapshot{now, {}};
  for (const DeviceId worker : workers_) snapshot.activity.push_back(accounts_.times(worker, now));
  snapshots_.push_back(std::move(snapshot));
  if (snapshots_.size() > history_) snapshots_.pop_front();
  ends_.push_back(now);
}

StepMetrics StepObserver::window(std::int64_t iterations) const {
  const Snapshot& last = snapshots_.back();
  const Snapshot& first = snapshots_[snapshots_.size() - 1 - static_cast<std::size_t>(iterations)];
  const auto n = static_cast<double>(iterations);
  StepMetrics metrics;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    const ActivityTimes times = last.activity[w] - first.activity[w];
    metrics.compute += times.compute();
    metrics.communication += times.communication();
    metrics.exposed_communication += times.communication_only;
  }
  const double scale = workers_.empty() ? 0 : 1 / (n * static_cast<double>(workers_.size()));
  metrics.compute *= scale;
  metrics.communication *= scale;
  metrics.exposed_communication *= scale;
  return metrics;
}

std::pair<double, double> StepObserver::mean_iteration() const {
  const std::size_t iterations = ends_.size() - 1;
  if (iterations == 0) return {0, 0};
  const std::size_t warm_up = iterations / 10;
  const std::size_t used = iterations - warm_up;
  const double mean = (ends_.back() - ends_[warm_up]) / static_cast<double>(used);
  // Batch means (Law and Carson 1979): 20 batches are long enough to be nearly independent; t(0.975, 19) = 2.093.
  constexpr std::size_t kBatches = 20;
  const std::size_t size = used / kBatches;
  if (size == 0) return {mean, 0};
  std::vector<double> batch(kBatches);
  for (std::size_t b = 0; b < kBatches; ++b)
    batch[b] = (ends_[warm_up + (b + 1) * size] - ends_[warm_up + b * size]) / static_cast<double>(size);
  const double batch_mean = std::accumulate(batch.begin(), batch.end(), 0.0) / kBatches;
  double square = 0;
  for (const double b : batch) square += (b - batch_mean) * (b - batch_mean);
  return {mean, 2.093 * std::sqrt(square / (kBatches - 1) / kBatches)};
}

}  // namespace epocast
