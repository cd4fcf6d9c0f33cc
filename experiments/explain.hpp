#pragma once
// Says in words what limits a run.

#include <string>

#include "sim/execution.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// Seconds per iteration that no order of service can go below: the longest cycle of dependencies on an idle network,
/// or the time that the busiest link needs for what it carries.
double lower_bound(const ExecutionResult& result);

/// One line: the busiest link if that sets the lower bound, else the critical cycle, shortened, e.g. "forward conv1 ..
/// backward conv1 -> all-reduce fc6 -> update fc6 -> forward conv1 of the next iteration"; or what the simulation says
/// instead where no cycle is known (noise).
std::string limited_by(const CyclicTaskGraph& graph, const ExecutionResult& result);

/// Several lines: the cycle with the time of each part, the bound and how far the run is from it, and where the rest
/// goes.
std::string explain(const CyclicTaskGraph& graph, const ExecutionResult& result);

}  // namespace epocast
