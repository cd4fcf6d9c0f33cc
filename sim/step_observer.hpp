#pragma once
// Turns what happened up to the ends of iterations into averages per iteration.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/activity.hpp"
#include "sim/execution.hpp"
#include "sim/task_activity.hpp"

namespace epocast {

/// Remembers what the accounts said at the end of each iteration, and averages over a window of them.
class StepObserver {
 public:
  /// `workers`: devices to average over.
  StepObserver(const ActivityAccounts& accounts, std::vector<CountedDevice> workers, double start);

  /// An iteration has ended everywhere, now.
  void iteration_ended(double now);
  std::int64_t iterations() const { return static_cast<std::int64_t>(snapshots_.size()) - 1; }

  /// Averages over the last `iterations` iterations, of all that is a matter of time: not the bytes, which count when a
  /// message arrives, perhaps at the very end of the window. REQUIRES: 1 .. iterations().
  StepMetrics window(std::int64_t iterations) const;

  /// Mean time of the last `iterations` iterations, and the half width of its 95 % confidence interval from batch
  /// means (0 for fewer than 20 iterations). REQUIRES: 1 .. iterations().
  std::pair<double, double> mean_iteration(std::int64_t iterations) const;

 private:
  struct Snapshot {
    double time = 0;
    double compute = 0, communication = 0, exposed = 0;  ///< s since the start, summed over workers
  };

  const ActivityAccounts& accounts_;
  std::vector<CountedDevice> workers_;
  std::vector<Snapshot> snapshots_;
};

}  // namespace epocast
