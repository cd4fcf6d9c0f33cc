#pragma once
// What a user should know before believing a result.

#include <optional>
#include <vector>

#include "experiments/phase_run.hpp"
#include "experiments/result.hpp"
#include "experiments/scenario.hpp"
#include "experiments/study_change.hpp"

namespace epocast {

/// Adds to a scenario's warnings what its runs show: memory that lacks, estimates, phase locking, settings that
/// calibrations do not cover. `remedies` against a lack of memory: none if none were looked for.
void add_warnings(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs,
                  const std::optional<std::vector<Remedy>>& remedies, ScenarioResult& out);

}  // namespace epocast
