#include "experiments/calibrate/step_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "costmodels/corrected.hpp"
#include "costmodels/network_calibration.hpp"
#include "experiments/scaled_setting.hpp"

namespace epocast {
namespace {

constexpr const char* kComputing = "compute.scale";
constexpr double kFreeLinks = 1000;  // times their bandwidth: as if it had no end

double read_value(const ConfigNode& node, const StepConstant& constant) {
  return constant.unit == "s" ? node.as_seconds().value : node.as_double(Range{0, 1e6});
}

std::vector<std::string> read_names(const ConfigNode& node) {
  std::vector<std::string> out;
  for (const ConfigNode& item : node.items()) out.push_back(item.as_string());
  return out;
}

/// [least, most], each as `read` reads it.
template <class Read>
auto read_range(const ConfigNode& node, Read read) {
  const std::vector<ConfigNode> items = node.items();
  if (items.size() != 2) throw node.error("must be [least, most]");
  const std::array out{read(items[0]), read(items[1])};
  if (out[0] > out[1]) throw node.error("must be [least, most], the smaller one first");
  return out;
}

Discrepancy read_discrepancy(const ConfigNode& node) {
  std::vector<Discrepancy::Pull> pulls;
  for (const ConfigNode& item : node.items()) {
    const auto count = [&](const char* key) { return static_cast<double>(item.at(key).as_int(Range{1, 1e12})); };
    pulls.push_back({{item.at("platform").as_string(), item.at("model").as_string(), item.at("strategy").as_string(),
                      count("workers"), count("batch")},
                     item.at("weight").as_double(Range{-10, 10})});
  }
  return Discrepancy(std::move(pulls));
}

std::string names_text(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + yaml_quoted(name);
  return "[" + out + "]";
}

}  // namespace

const std::vector<StepConstant>& step_constants() {
  static const std::vector<StepConstant> all{{kComputing, "", 1, 1, false},
                                             {"compute.step_overhead", "s", 1e-3, 3, false},
                                             {"compute.kernel_overhead", "s", 5e-6, 2, false},
                                             {"network.efficiency", "", 0.9, 0.5, true, kFreeLinks, {1}, kFreeLinks},
                                             {"network.message_overhead", "s", 1e-5, 2, false},
                                             {"stack.scale", "", 1, 1, false, 100, {0, 1}, 0},
                                             {"stack.spread", "", 0.02, 1, false, 1},
                                             {"stack.interference", "", 0.5, 0.5, false, 0.95},
                                             {"stack.collective_overhead", "s", 5e-5, 1.5, false, 10},
                                             {"stack.copies", "", 4, 0.5, false, 100}};
  return all;
}

std::optional<StepPlace> StepRange::place() const {
  if (platforms.size() != 1 || models.size() != 1 || strategies.size() != 1 || workers[0] != workers[1] ||
      batch[0] != batch[1])
    return std::nullopt;
  return StepPlace{platforms[0], models[0], strategies[0], static_cast<double>(workers[0]), batch[0]};
}

const StepConstant& find_step_constant(const std::string& key) {
  std::vector<std::string> keys;
  for (const StepConstant& c : step_constants()) {
    if (c.key == key) return c;
    keys.push_back(c.key);
  }
  throw std::invalid_argument("'" + key + "' cannot be fitted" + name_hint(key, keys));
}

std::string step_constant_text(const StepConstant& constant, double value) {
  return fmt::format("{:.7g}{}", value, constant.unit.empty() ? "" : " " + constant.unit);
}

std::string to_yaml(const StepCalibration& c) {
  std::string out = "# Written by `epocast calibrate steps`; see docs/calibration.md.\ncalibration: steps\n";
  auto to = std::back_inserter(out);
  fmt::format_to(to, "fitted_to: {}\n", yaml_quoted(c.study));
  if (!c.source.empty()) fmt::format_to(to, "source: {}\n", yaml_quoted(c.source));
  if (!c.date.empty()) fmt::format_to(to, "date: {}\n", yaml_quoted(c.date));
  fmt::format_to(to, "quality: {{points: {}, error: {:.4g}, left_out_error: {:.4g}, within_90: {:.4g}}}\n", c.points,
                 c.error, c.left_out_error, c.within_90);
  fmt::format_to(to,
                 "measured:\n  platforms: {}\n  models: {}\n  strategies: {}\n  workers: [{}, {}]\n  batch: [{}, {}]\n",
                 names_text(c.measured.platforms), names_text(c.measured.models), names_text(c.measured.strategies),
                 c.measured.workers[0], c.measured.workers[1], c.measured.batch[0], c.measured.batch[1]);
  out += "constants:\n";
  for (const FittedParameter& p : c.constants) {
    const StepConstant& constant = find_step_constant(p.name);
    fmt::format_to(to, "  {}: {{value: {}, low: {}, high: {}}}\n", p.name, step_constant_text(constant, p.value),
                   step_constant_text(constant, p.low), step_constant_text(constant, p.high));
  }
  if (!c.discrepancy.pulls().empty()) out += "discrepancy:\n";
  for (const auto& [place, weight] : c.discrepancy.pulls())
    fmt::format_to(to, "  - {{platform: {}, model: {}, strategy: {}, workers: {}, batch: {}, weight: {:.6g}}}\n",
                   yaml_quoted(place.platform), yaml_quoted(place.model), yaml_quoted(place.strategy), place.workers,
                   place.batch, weight);
  return out;
}

StepConstants::StepConstants(const ConfigNode& root, std::string name) : name_(std::move(name)) {
  if (root.at("calibration").as_string() != "steps")
    throw root.at("calibration").error("must be 'steps' here, not '" + root.at("calibration").as_string() + "'");
  calibration_.study = root.at("fitted_to").as_string();
  calibration_.source = root.get("source", "");
  calibration_.date = root.get("date", "");
  const ConfigNode quality = root.at("quality");
  calibration_.points = static_cast<int>(quality.at("points").as_int(Range{1, 1e6}));
  calibration_.error = quality.at("error").as_double(Range{0, 1e6});
  calibration_.left_out_error = quality.at("left_out_error").as_double(Range{0, 1e6});
  calibration_.within_90 = quality.get("within_90", calibration_.within_90, Range{0, 100});
  const ConfigNode measured = root.at("measured");
  calibration_.measured = {read_names(measured.at("platforms")), read_names(measured.at("models")),
                           read_names(measured.at("strategies")),
                           read_range(measured.at("workers"),
                                      [](const ConfigNode& n) {
                                        return n.as_int(Range{1, 1e12});
                                      }),
                           read_range(measured.at("batch"), [](const ConfigNode& n) {
                             return n.as_double(Range{1e-6, 1e12});
                           })};
  const ConfigNode constants = root.at("constants");
  for (const std::string& key : constants.keys()) {
    const ConfigNode node = constants.at(key);
    const StepConstant* constant = nullptr;
    try {
      constant = &find_step_constant(key);
    } catch (const std::invalid_argument& problem) {
      throw node.error(problem.what());
    }
    values_.push_back({key, node.at("value")});
    calibration_.constants.push_back({key, constant->unit, read_value(node.at("value"), *constant),
                                      read_value(node.at("low"), *constant), read_value(node.at("high"), *constant)});
  }
  if (values_.empty()) throw constants.error("must have at least one constant");
  if (root.has("discrepancy")) calibration_.discrepancy = read_discrepancy(root.at("discrepancy"));
  root.check_all_read();
}

ConfigNode StepConstants::apply(const ConfigNode& config) const {
  ConfigNode out = config;
  for (const Value& value : values_) {
    if (value.key.starts_with("stack.")) {
      if (!config.has("stack"))
        throw value.node.error("is a constant of a software stack; the study must name it, as in `stack: pytorch_ddp`");
      if (const ConfigNode stack = out.at("stack"); !stack.is_map())
        out = out.without("stack").with("stack.name", stack);
    }
    if (const std::optional<ConfigNode> found = node_at(config, value.key))
      throw found->error(fmt::format("comes from steps calibration '{}'; remove it here, or the key steps", name_));
    out = out.with(value.key, value.node);
  }
  return out;
}

const StepConstants::Value* StepConstants::scale() const {
  const auto found = std::ranges::find(values_, kComputing, &Value::key);
  return found == values_.end() ? nullptr : &*found;
}

double StepConstants::computing(const StepRange& scenario) const {
  const std::optional<StepPlace> place = scenario.place();
  return place && scale() != nullptr ? calibration_.discrepancy.factor(*place) : 1;
}

ConfigNode StepConstants::computing(const ConfigNode& compute, const StepRange& scenario) const {
  const double factor = computing(scenario);
  if (factor == 1) return compute;
  const ConfigNode& fitted = scale()->node;
  const double here = fitted.as_double() * factor;
  if (here < kLeastTimeScale || here > kMostTimeScale)
    throw fitted.error(
        fmt::format("the discrepancy of steps calibration '{}' makes it {:.3g} here; leave that out", name_, here));
  compute.mark_all_read();  // what is returned is read instead, and checked
  return compute.with("scale", ConfigNode::load_text(fmt::format("{:.7g}", here), kComputing));
}

std::optional<double> StepConstants::within_90(const StepRange& scenario) const {
  if (calibration_.within_90 == 0 || !scenario.place() || !caveats(scenario).empty()) return std::nullopt;
  return calibration_.within_90;
}

std::string StepConstants::explanation(const StepRange& scenario) const {
  const double more = computing(scenario) - 1;
  const std::string text = fmt::format("{:.1f} % {}", 100 * std::abs(more), more > 0 ? "more" : "less");
  if (text.starts_with("0.0 %")) return "";
  return fmt::format(
      "Computing takes {} time than the constants of steps calibration '{}' say, as in measured steps near.\n", text,
      name_);
}

std::vector<std::string> StepConstants::caveats(const StepRange& scenario) const {
  const StepRange& known = calibration_.measured;
  std::vector<std::string> out;
  const auto check_names = [&](const char* kind, const std::vector<std::string>& names,
                               const std::vector<std::string>& of) {
    for (const std::string& name : names)
      if (std::ranges::find(of, name) == of.end())
        out.push_back(fmt::format("steps calibration '{}' was fitted to {} {}, not to {}", name_, kind,
                                  fmt::join(of, ", "), name));
  };
  const auto check_range = [&]<class T>(const char* what, std::array<T, 2> range, std::array<T, 2> of) {
    for (const T value : {range[0], range[1]})
      if (value < of[0] || value > of[1]) {
        out.push_back(
            fmt::format("extrapolated: {} {} lies outside what steps calibration '{}' was fitted to, {} to {}", what,
                        value, name_, of[0], of[1]));
        return;
      }
  };
  check_names("platform", scenario.platforms, known.platforms);
  check_names("model", scenario.models, known.models);
  check_names("strategy", scenario.strategies, known.strategies);
  check_range("workers =", scenario.workers, known.workers);
  check_range("a worker's batch =", scenario.batch, known.batch);
  if (!calibration_.discrepancy.pulls().empty() && !scenario.place())
    out.push_back(fmt::format("steps calibration '{}': its discrepancy is left out, as phases differ", name_));
  return out;
}

}  // namespace epocast
