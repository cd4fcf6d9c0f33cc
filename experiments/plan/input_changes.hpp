#pragma once
// Inputs of scenarios that may be off, and by how much.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/scenario.hpp"

namespace epocast {

/// One change of one input.
struct InputChange {
  std::string input, change;     ///< for people
  std::string platform = {};     ///< only of scenarios with this value of an axis over platforms; "": of all
  std::string stack = {};        ///< only of scenarios that run with this software; "": of all
  std::string calibration = {};  ///< only of scenarios whose computations are timed by it
  // A key of the study, times `factor` (`fallback` is its value where it is not given), or set to `value`.
  std::string key = {};
  double factor = 1;
  std::optional<double> fallback = {};
  std::optional<std::string> value = {};
  // Without a key: factors on results.
  double time = 1, cost = 1, energy = 1;

  bool applies(const Scenario& scenario, const ConfigNode& config, const ScenarioResult& result) const;
  /// The scenario with its key changed; nothing where it has no such key.
  std::optional<Scenario> applied(const Scenario& scenario, const ConfigNode& config) const;
  /// A result with the factors.
  ScenarioResult applied(ScenarioResult result) const;
};

/// All that may be off in these scenarios, by `share` or by what calibrations state. `results`: theirs.
std::vector<InputChange> input_changes(const std::vector<Scenario>& scenarios,
                                       const std::vector<ScenarioResult>& results, double share);

}  // namespace epocast
