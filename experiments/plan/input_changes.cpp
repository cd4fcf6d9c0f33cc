#include "experiments/plan/input_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/scaled_setting.hpp"
#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"

namespace epocast {
namespace {

/// Numbers of a study that were measured or assumed, as opposed to chosen.
constexpr const char* kMeasured[] = {"failures.node_mtbf",        "failures.write",
                                     "failures.restart",          "pauses.checkpoint.rate",
                                     "collective.reduction_rate", "network.message_overhead",
                                     "compute.step_overhead",     "compute.kernel_overhead",
                                     "noise.compute_cv",          "compute.launch"};

std::string platform_of(const Scenario& scenario) {
  for (const auto& [axis, label] : scenario.axes)
    if (axis == "platform") return label;
  return "";
}

std::string calibration_of(const ConfigNode& config) {
  const std::optional<ConfigNode> named = node_at(config, "compute.calibration");
  return named && named->is_scalar() ? named->as_string() : "";
}

/// The largest of the median errors that a compute calibration states of its fits.
std::optional<double> stated_error(const std::string& calibration) {
  try {
    const ConfigNode name = ConfigNode::load_text(calibration, "calibration");
    const ConfigNode root = ConfigNode::load_file(
        find_data_file(name, {"calibration", data_directory() / "costmodels" / "calibrations", ".yaml"}));
    std::optional<double> most;
    for (const ConfigNode& fit : root.at("fits").items())
      if (fit.has("quality") && fit.at("quality").has("error"))
        most = std::max(most.value_or(0), fit.at("quality").at("error").as_double());
    return most;
  } catch (const ConfigError&) {
    return std::nullopt;  // none is stated
  }
}

/// The ranges of a stack's constants, and what it leaves unexplained.
void add_stack(const std::string& stack, std::vector<InputChange>& out) {
  const std::filesystem::path file = data_directory() / "costmodels" / "stacks" / (stack + ".yaml");
  if (stack.empty() || !std::filesystem::exists(file)) return;
  const ConfigNode root = ConfigNode::load_file(file);
  if (root.has("ranges"))
    for (const std::string& key : root.at("ranges").keys())
      for (const ConfigNode& end : root.at("ranges").at(key).items())
        out.push_back({.input = key + " of stack " + stack,
                       .change = end.as_string(),
                       .stack = stack,
                       .key = "stack." + key,
                       .value = end.as_string()});
  if (!root.has("unexplained")) return;
  const double share = root.at("unexplained").as_double();
  for (const double sign : {-1.0, 1.0})
    out.push_back({.input = "what stack " + stack + " leaves unexplained",
                   .change = fmt::format("{:+g} %", 100 * sign * share),
                   .stack = stack,
                   .time = 1 + sign * share,
                   .cost = 1 + sign * share,
                   .energy = 1 + sign * share});
}

}  // namespace

bool InputChange::applies(const Scenario& scenario, const ConfigNode& config, const ScenarioResult& result) const {
  return (platform.empty() || platform_of(scenario) == platform) && (stack.empty() || result.stack == stack) &&
         (calibration.empty() || calibration_of(config) == calibration);
}

std::optional<Scenario> InputChange::applied(const Scenario& scenario, const ConfigNode& config) const {
  // Whose constant it is.
  const Scenario own = stack.empty() || config.has("stack") ? scenario : with_setting(scenario, "stack", stack);
  return value ? with_setting(own, key, *value) : with_scaled(own, config, key, factor, fallback);
}

ScenarioResult InputChange::applied(ScenarioResult result) const {
  result.total_s *= time;
  for (auto& [column, by] : {std::pair{&result.cost, cost}, std::pair{&result.energy_j, energy},
                             std::pair{&result.co2_kg, energy}, std::pair{&result.time_to_target_s, time}})
    if (*column) **column *= by;
  return result;
}

std::vector<InputChange> input_changes(const std::vector<Scenario>& scenarios,
                                       const std::vector<ScenarioResult>& results, double share) {
  std::set<std::string> platforms, stacks, calibrations, keys;
  bool cost = false, energy = false;
  for (std::size_t s = 0; s < scenarios.size(); ++s) {
    const ConfigNode config = scenarios[s].config();
    platforms.insert(platform_of(scenarios[s]));
    stacks.insert(results[s].stack);
    if (const std::string calibration = calibration_of(config); !calibration.empty()) calibrations.insert(calibration);
    for (const char* key : kMeasured)
      if (const auto given = node_at(config, key); given && given->is_scalar()) keys.insert(key);
    cost |= results[s].cost.has_value();
    energy |= results[s].energy_j.has_value();
  }
  std::vector<InputChange> out;
  for (const double sign : {-1.0, 1.0}) {
    const double by = 1 + sign * share;
    const std::string change = fmt::format("{:+g} %", 100 * sign * share);
    for (const std::string& platform : platforms) {
      const std::string of = platform.empty() ? "" : " of " + platform;
      out.push_back({.input = "speed of devices" + of,
                     .change = change,
                     .platform = platform,
                     .key = "compute.scale",
                     .factor = 1 / by,
                     .fallback = 1});
      out.push_back({.input = "bandwidth of links" + of,
                     .change = change,
                     .platform = platform,
                     .key = "network.efficiency",
                     .factor = by,
                     .fallback = 1});
      if (cost) out.push_back({.input = "price" + of, .change = change, .platform = platform, .cost = by});
      if (energy) out.push_back({.input = "power" + of, .change = change, .platform = platform, .energy = by});
    }
    out.push_back({.input = "amount of training", .change = change, .time = by, .cost = by, .energy = by});
    for (const std::string& key : keys) out.push_back({.input = key, .change = change, .key = key, .factor = by});
    for (const std::string& calibration : calibrations)
      if (const std::optional<double> error = stated_error(calibration))
        out.push_back({.input = "times of calibration " + calibration,
                       .change = fmt::format("{:+.2g} %", 100 * sign * *error),
                       .calibration = calibration,
                       .key = "compute.scale",
                       .factor = 1 + sign * *error,
                       .fallback = 1});
  }
  for (const std::string& stack : stacks) add_stack(stack, out);
  return out;
}

}  // namespace epocast
