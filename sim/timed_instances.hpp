#pragma once
// Which instances of a graph take time, or may.

#include <cstdint>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/execution.hpp"

namespace epocast {

/// Instances whose ends say how far a run has come. Joins that take no time and wait for no queue end when the last of
/// those before them ends; what was there before the first iteration lets them run ahead of it, which holds up nothing.
class TimedInstances {
 public:
  TimedInstances(const CompiledGraph& graph, const ExecutionOptions& options);

  std::uint64_t count() const { return count_; }
  bool contains(Instance i) const { return first_[i.task] >= 0; }
  /// 0 .. count() - 1. REQUIRES contains(i).
  std::uint64_t number_of(Instance i) const { return static_cast<std::uint64_t>(first_[i.task]) + i.rank; }

 private:
  std::vector<std::int64_t> first_;  ///< by task: number of its first instance; -1: it takes no time
  std::uint64_t count_ = 0;
};

}  // namespace epocast
