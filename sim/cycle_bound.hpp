#pragma once
// The maximum cycle ratio of a task graph: total duration over total lag of the slowest cycle.

#include <functional>
#include <optional>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/execution.hpp"

namespace epocast {

/// How far an instance had come at one moment of the steady state, for adding the order of service on its queue to the
/// graph.
struct ServiceCount {
  std::uint32_t task = 0;
  std::uint32_t rank = 0;
  std::int32_t slot = -1;   ///< of a first-come or priority queue; -1 if it waits for none
  std::int64_t begun = 0;   ///< iterations that it had begun
  std::uint64_t order = 0;  ///< when it began the last of them, in the sequence of all beginnings
};

/// The cycle with the largest sum of durations per iteration of lag.
/// `duration(instance)` is in s on an idle network. `counts`, if not empty, must have all instances, at a moment of a
/// steady state of period 1; then the order of service adds edges from each instance to the next on its slot. Where
/// nothing contends, this is the period of the steady state.
CycleBound maximum_cycle_ratio(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                               const std::vector<ServiceCount>& counts);

}  // namespace epocast
