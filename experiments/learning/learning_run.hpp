#pragma once
// Learning in the loop: trains a small problem in the order that a simulated run dictates.

#include <vector>

#include "experiments/phase_run.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

/// Trains by the scenario's learning block, once for each of its seeds, and fills the columns of learning, the curves
/// and what there is to warn of. `runs`: the phases as they were timed, which stay as they are.
void learn(const ScenarioSetup& setup, SimEngine& engine, const std::vector<PhaseRun>& runs, ScenarioResult& out);

/// Replaces the phases of an adaptive schedule, if there is one, by those that learning decides: trains with the first
/// batch until theta changes by less than a tenth from one epoch to the next, and takes so many epochs for the interval
/// (Lee 2020, Algorithm 3).
void adapt_schedule(ScenarioSetup& setup, SimEngine& engine);

}  // namespace epocast
