#pragma once
// How much of what they could compute devices do compute: the columns `mfu` and `hfu`.

#include <vector>

#include "experiments/phase_run.hpp"
#include "experiments/result.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

/// Sets tokens_per_s, and mfu and hfu: the FLOP of all phases over what their workers' devices could do in the time of
/// these phases. Each is left out where it is not known. REQUIRES: samples_per_s is set.
void add_utilisation(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, ScenarioResult& out);

}  // namespace epocast
