#pragma once
// What targets share.

#include <functional>
#include <string>
#include <vector>

#include "experiments/reproduce/target.hpp"

namespace epocast {

/// Results of all scenarios, in order. Throws ConfigError or SimulationError for the first that failed, as it would
/// have.
std::vector<ScenarioResult> simulate(const std::vector<Scenario>& scenarios, const TargetContext& context,
                                     const RunOptions& options = {});

/// Simulates all scenarios, in order, where it is called. They have one platform and network.
using SimulateHere = std::function<std::vector<ScenarioResult>(const std::vector<Scenario>&)>;

/// What `job` returns from a process of its own, in which it may simulate as often as it likes: for fits, whose every
/// step is short, but one after the other. Throws as simulate() does, and as `job` does.
std::string in_one_process(const TargetContext& context, const std::function<std::string(const SimulateHere&)>& job);

/// simulate() for what takes long: results are kept in `context.keep`, and taken from there.
std::vector<ScenarioResult> simulate_keeping(const std::vector<Scenario>& scenarios, const TargetContext& context);

}  // namespace epocast
