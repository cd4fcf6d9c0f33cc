#pragma once
// What a scenario's columns leave out: the content of `run --details`.

#include <string>
#include <vector>

#include "experiments/phase_run.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

/// A JSON object with a list `phases`, each an object with sections such as `memory`; see docs/output.md. Sizes in
/// bytes, times in s, both per iteration of the graph (`steps` steps of every worker) where not said otherwise. `runs`
/// are those of the first seed; with several there is a section `seeds`.
std::string details(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs,
                    const std::vector<ScenarioResult>& by_seed);

}  // namespace epocast
