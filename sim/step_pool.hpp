#pragma once
// How many steps each rank may do: its own, or what it takes from a common pool.

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/execution.hpp"

namespace epocast {

/// Hands out steps. With stealing, a rank takes a step from the pool when the first of its tasks begins it.
class StepPool {
 public:
  /// REQUIRES for stealing: CyclicTaskGraph::ranks_are_independent().
  StepPool(const CompiledGraph& graph, const ExecutionOptions& options);

  /// Whether the instance, which has started `started` firings, may start another one.
  bool may_start(Instance i, std::int64_t started);
  /// With stealing: records that an instance ended `iteration` and returns whether as many steps as there are ranks
  /// have been completed since it last returned true.
  bool iteration_ended(Instance i, std::int64_t iteration);

  bool stealing() const { return !granted_.empty(); }
  /// Steps per rank, on average, that are handed out.
  double iterations() const;
  std::int64_t completed() const { return rounds_; }  ///< with stealing: iterations of all ranks on average
  /// Hands out no more than `iterations` per rank (on average), counting those already out.
  void stop_at(std::int64_t iterations);
  std::int64_t limit() const { return limit_; }

 private:
  std::int64_t limit_;                 ///< without stealing
  std::int64_t left_ = 0;              ///< in the pool
  std::uint64_t tasks_;                ///< per rank
  std::vector<std::int64_t> granted_;  ///< by rank
  struct Progress {
    std::int64_t first = 0;           ///< iteration that `ended` begins with
    std::deque<std::uint64_t> ended;  ///< tasks that ended it
  };
  std::vector<Progress> progress_;  ///< by rank
  std::int64_t steps_ = 0, rounds_ = 0;
};

}  // namespace epocast
