#pragma once
// One simulated phase of training with what it was made of.

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "experiments/overlap_report.hpp"
#include "sim/execution.hpp"
#include "sim/strategy.hpp"

namespace epocast {

/// Batch size, and a device of the kind.
using AskedTrace = std::pair<std::int64_t, DeviceId>;

/// What was sent before a phase because other workers train in it than before.
struct Joining {
  double seconds = 0, bytes = 0;
};

struct PhaseRun {
  TrainingStep step;
  double batch = 0;             ///< samples of all workers that one step applies: without those that a quorum drops
  std::int64_t iterations = 0;  ///< steps of all epochs
  std::set<AskedTrace> asked;   ///< traces that the strategy used
  ExecutionResult result;       ///< with the total of these steps, of a round that they cut short a share
  Joining joining = {};
  double single_step = 0;  ///< s: the fastest kind of worker doing the whole `batch` alone; 0 without a model
  std::optional<double> lone_step = {};       ///< s: one device doing its share of a step; none where that does not fit
  double evaluation_step = 0;                 ///< s: a forward pass of a whole batch, if training is evaluated
  std::optional<OverlapReport> overlap = {};  ///< if asked for, see measure_overlap

  /// Iterations of the graph that all steps take, of the last one perhaps a part.
  std::int64_t rounds() const { return (iterations + step.steps - 1) / step.steps; }
  /// Of so many whole rounds, the share that all steps are.
  double share_of_rounds() const {
    return static_cast<double>(iterations) / static_cast<double>(rounds() * step.steps);
  }
  /// Of something per iteration of the graph, the share of one step.
  double per_step(double of_iteration) const { return of_iteration / static_cast<double>(step.steps); }
};

}  // namespace epocast
