#pragma once
// The event log of a scenario's phase, from a simulation of its own: the one that gives times is not touched.

#include <optional>

#include "experiments/scenario.hpp"
#include "sim/parameter_log.hpp"

namespace epocast {

/// Simulates as much of the phase as it takes to know `iterations` iterations of its graph: two periods if `known`, the
/// result of its timing, found one, else all. `elapsed`: s of training before the phase.
/// Throws SimulationError if a log that is too large for memory has no room on disk either.
ParameterLog record_parameter_log(const ScenarioSetup& setup, const PhaseSettings& phase, SimEngine& engine,
                                  std::uint64_t seed, double elapsed, std::int64_t iterations,
                                  const ExecutionResult* known);

}  // namespace epocast
