#pragma once
// The maximum cycle ratio of a task graph: total duration over total lag of the slowest cycle.

#include <functional>
#include <optional>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/execution.hpp"

namespace epocast {

/// When each instance last began service on a first-come or priority queue, for adding the queue's order to the graph.
struct ServiceStart {
  std::uint32_t task = 0;
  std::uint32_t rank = 0;
  std::int32_t slot = 0;
  double time = 0;              ///< s, at iteration `iteration`
  std::int64_t iteration = 0;
};

/// The cycle with the largest sum of durations per iteration of lag (Howard's algorithm; Cochet-Terrasson et al. 1998).
/// `duration(instance)` is in s on an idle network. With `iteration_seconds` > 0 the order of service in `starts` adds
/// edges from each instance to the next on its slot. Where nothing contends, this is the period of the steady state.
CycleBound maximum_cycle_ratio(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                               const std::vector<ServiceStart>& starts, double iteration_seconds);

}  // namespace epocast
