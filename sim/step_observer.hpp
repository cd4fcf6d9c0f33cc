#pragma once
// Turns what happened up to the ends of iterations into averages per iteration.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/activity.hpp"
#include "sim/execution.hpp"

namespace epocast {

/// Counts parameter versions. Staleness of a write is how many writes came between its rank's last read and itself.
class VersionCounter {
 public:
  VersionCounter(std::size_t stores, std::size_t ranks)
      : version_(stores, 0), read_(stores, std::vector<std::int64_t>(ranks, 0)) {}

  void read(StoreId store, std::uint32_t rank) { read_[at(store)][rank] = version_[at(store)]; }
  /// `counts`: whether this write enters the statistics; those of the first round see an empty pipeline.
  void write(StoreId store, std::uint32_t rank, bool counts);

  std::optional<double> mean() const;
  std::optional<std::int64_t> max() const;

 private:
  static std::size_t at(StoreId store) { return static_cast<std::size_t>(store); }
  std::vector<std::int64_t> version_;
  std::vector<std::vector<std::int64_t>> read_;
  std::int64_t writes_ = 0, max_ = 0;
  double sum_ = 0;
};

/// Keeps what the accounts said at the ends of the last iterations, and averages over a window of them.
class StepObserver {
 public:
  /// `workers`: devices to average over.
  StepObserver(const ActivityAccounts& accounts, std::vector<DeviceId> workers, std::size_t history, double start);

  /// An iteration has ended everywhere, now.
  void iteration_ended(double now);

  /// Averages over the last `iterations` iterations, of all that is a matter of time: not the bytes, which count when a
  /// message arrives, perhaps at the very end of the window. REQUIRES: no more than have ended and are kept.
  StepMetrics window(std::int64_t iterations) const;
  /// The longest window available.
  std::int64_t longest_window() const { return static_cast<std::int64_t>(snapshots_.size()) - 1; }

  /// Mean time per iteration after the first tenth, and the half width of its 95 % confidence interval from batch
  /// means.
  std::pair<double, double> mean_iteration() const;

 private:
  struct Snapshot {
    double time = 0;
    std::vector<ActivityTimes> activity;  ///< by worker
  };

  const ActivityAccounts& accounts_;
  std::vector<DeviceId> workers_;
  std::size_t history_;
  std::deque<Snapshot> snapshots_;
  std::vector<double> ends_;  ///< s, of every iteration
};

}  // namespace epocast
