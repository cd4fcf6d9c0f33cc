#pragma once
// Money, energy and failures of a simulated scenario.

#include <vector>

#include "experiments/scenario.hpp"

namespace epocast {

/// Fills the columns cost, energy_j, co2_kg and goodput as far as the scenario asks for them, and lengthens total_s and
/// epoch_s by what pauses and failures take. `runs`: its phases, from which `out` was made.
/// Throws SimulationError where failures come too often for training to end.
void add_running_costs(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, ScenarioResult& out);

/// B that a checkpoint holds: parameters that are trained and the optimizer's state, in fp32, once, however many
/// devices hold copies.
double checkpoint_bytes(const ScenarioSetup& setup);

}  // namespace epocast
