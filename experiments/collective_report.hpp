#pragma once
// Which algorithms the collectives of a run took.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/execution.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// Collectives of an iteration that do the same by the same algorithm.
struct AlgorithmUse {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::optional<CollectiveAlgorithm> algorithm;  ///< none: their times were measured
  std::int64_t count = 0;
  Bytes smallest, largest;

  std::string name() const;  ///< of the algorithm, or "measured"
};

/// By operation, then by algorithm.
std::vector<AlgorithmUse> algorithm_uses(const CyclicTaskGraph& graph, const ExecutionResult& result);

/// Adds the names of algorithms to `names`, joined by "+", each once.
void add_algorithm_names(const std::vector<AlgorithmUse>& uses, std::string& names);

}  // namespace epocast
