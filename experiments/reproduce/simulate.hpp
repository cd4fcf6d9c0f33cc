#pragma once
// What targets share.

#include <vector>

#include "experiments/reproduce/target.hpp"

namespace epocast {

/// Results of all scenarios, in order. Throws ConfigError or SimulationError for the first that failed, as it would
/// have.
std::vector<ScenarioResult> simulate(const std::vector<Scenario>& scenarios, const TargetContext& context,
                                     const RunOptions& options = {});

/// The same for what takes long: results are kept in `context.keep`, and taken from there.
std::vector<ScenarioResult> simulate_keeping(const std::vector<Scenario>& scenarios, const TargetContext& context);

}  // namespace epocast
