#pragma once
// Runs a cyclic task graph on the simulated cluster.

#include "sim/execution.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// Simulates `options.iterations` iterations of `graph`: all of them, or until the loop is periodic and then the rest
/// by arithmetic (the run-down of the last iterations is simulated in any case, so totals are exact). Several graphs
/// may be executed one after the other on one engine; the engine's clock goes on. Throws GraphError for a malformed
/// graph and SimulationError for a deadlock, naming who waits for whom.
ExecutionResult execute(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine,
                        const ExecutionOptions& options);

}  // namespace epocast
