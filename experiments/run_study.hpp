#pragma once
// Runs all scenarios of a study, each in its own process, on all processors.

#include <functional>
#include <vector>

#include "experiments/scenario.hpp"

namespace epocast {

/// Called after each scenario with how many are done of how many.
using Progress = std::function<void(std::size_t done, std::size_t of, const ScenarioResult& latest)>;

/// Results in the order of the scenarios. One that failed has an error text and an exit code; nothing is thrown for it.
/// With several scenarios, a trace file's name gets the scenario's number.
std::vector<ScenarioResult> run_study(const std::vector<Scenario>& scenarios, const Registries& registries,
                                      const RunOptions& options, int parallel, const Progress& progress);

}  // namespace epocast
