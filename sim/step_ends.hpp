#pragma once
// When the tasks of a simulated step ended.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/execution.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// A graph and what came of executing it, with ExecutionOptions::record_ends.
struct SimulatedStep {
  const CyclicTaskGraph& graph;
  const ExecutionResult& result;
};

/// As two shifts of a period may differ, of an iteration.
constexpr double kShiftTolerance = 1e-11;

/// The ends of tasks that differ in nothing but the micro-batch, of one rank, in the order of time [s]. Tasks that are
/// of no micro-batch may be called like others.
using Ends = std::vector<double>;
/// By operation, layer, rank (0 alone if folded) and whether they are of micro-batches.
using EndsByName = std::map<std::tuple<const std::string*, const std::string*, std::uint32_t, bool>, Ends>;

EndsByName ends_by_name(const SimulatedStep& step);

}  // namespace epocast
