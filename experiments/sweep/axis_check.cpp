#include "experiments/sweep/axis_check.hpp"

#include <algorithm>
#include <optional>

namespace epocast {
namespace {

/// What reading says if it stops at a key that is unknown and an axis.
std::optional<ConfigError> unknown_axis(const Scenario& scenario, const Registries& registries) {
  try {
    read_scenario(scenario, registries);
  } catch (const ConfigError& problem) {
    const auto is_it = [&](const auto& axis) { return axis.first == problem.key_path(); };
    if (problem.problem().starts_with("unknown key") && std::ranges::any_of(scenario.axes, is_it)) return problem;
  } catch (const std::exception&) {  // its row will say so
  }
  return std::nullopt;
}

/// Where the study writes the axis.
Location place_of(const Scenario& scenario, const ConfigError& problem) {
  const std::string& key = problem.key_path();
  if (!scenario.base.has("sweep")) return problem.where();
  const ConfigNode sweep = scenario.base.at("sweep");
  if (sweep.has(key)) return sweep.at(key).where();
  if (sweep.has("zip") && sweep.at("zip").has(key)) return sweep.at("zip").at(key).where();
  return problem.where();
}

}  // namespace

void check_axes(const std::vector<Scenario>& scenarios, const Registries& registries) {
  constexpr std::size_t kMost = 64;
  if (scenarios.empty() || scenarios.front().axes.empty()) return;
  const std::optional<ConfigError> first = unknown_axis(scenarios.front(), registries);
  if (!first) return;
  const std::size_t looked_at = std::min(kMost, scenarios.size());
  for (std::size_t l = 1; l < looked_at; ++l) {
    const std::optional<ConfigError> other = unknown_axis(scenarios[l * scenarios.size() / looked_at], registries);
    if (!other || other->key_path() != first->key_path()) return;
  }
  throw ConfigError(place_of(scenarios.front(), *first), "sweep." + first->key_path(),
                    first->problem() + "; no scenario knows it: correct the axis, or leave it out");
}

}  // namespace epocast
