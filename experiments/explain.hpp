#pragma once
// Says in words what limits a run.

#include <string>

#include "sim/execution.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// One line: the critical cycle, shortened, e.g. "forward conv1 .. backward conv1 -> all-reduce fc6 -> update fc6 -> forward
/// conv1 of the next iteration"; or what the simulation says instead where no cycle is known (noise).
std::string limited_by(const CyclicTaskGraph& graph, const ExecutionResult& result);

/// Several lines: the cycle with the time of each part, the bound and how far the run is from it, and where the rest goes.
std::string explain(const CyclicTaskGraph& graph, const ExecutionResult& result);

}  // namespace epocast
