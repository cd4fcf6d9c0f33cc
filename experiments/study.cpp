#include "experiments/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/default_strategy.hpp"
#include "experiments/store/condition.hpp"
#include "experiments/sweep/axes.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

constexpr const char* kDefaultStack = "ideal";
constexpr std::size_t kMaxScenarios = 100'000;
constexpr std::size_t kMaxLabels = 400'000'000;  // bytes of all scenarios' names: 4,000 each at the most scenarios

/// Written out, what a key below it is about to be set in: `strategy: NAME` as `strategy: {name: NAME}`, with the
/// default's name if there is none; `compute: NAME` as `compute: {cost_model: NAME}`.
ConfigNode spelled_out(const ConfigNode& config, const std::string& map, const std::string& name_key,
                       const ConfigNode& value, const char* fallback) {
  if (!config.has(map))
    return fallback == nullptr ? config
                               : config.with(map + "." + name_key, ConfigNode::load_text(fallback, value.where().file));
  const ConfigNode name = config.at(map);
  return name.is_scalar() ? config.without(map).with(map + "." + name_key, name) : config;
}

/// Sets a key of a scenario. `batch.global`, `batch.per_replica` and `batch.per_worker` say the same thing: setting one
/// drops the others.
ConfigNode set(const ConfigNode& config, const std::string& key, const ConfigNode& value) {
  if (key.starts_with("strategy.") && key != "strategy.name")
    return spelled_out(config, "strategy", "name", value, kDefaultStrategy).with(key, value);
  if (key.starts_with("stack.") && key != "stack.name")
    return spelled_out(config, "stack", "name", value, kDefaultStack).with(key, value);
  if (key.starts_with("compute.")) return spelled_out(config, "compute", "cost_model", value, nullptr).with(key, value);
  if (key.starts_with("batch.") && config.has("batch") && config.at("batch").is_map()) {
    ConfigNode batch = config.at("batch");
    for (const char* other : {"per_worker", "per_replica", "global"}) batch = batch.without(other);
    return config.with("batch", batch).with(key, value);
  }
  return config.with(key, value);
}

/// Whether setting `key` makes an axis over `axis` pointless: it is the same key, one inside it, or the other way to
/// give the batch size.
bool overrules(const std::string& key, const std::string& axis) {
  const bool same_batch = key.starts_with("batch.") && axis.starts_with("batch.");
  return axis == key || axis.starts_with(key + ".") || same_batch;
}

/// The study's axes as the command line changes them: `--set sweep.KEY=[..]` gives an axis new values or adds one,
/// `--set KEY=value` removes it. Adds to `notes` what is removed though it has another name.
SweepPlan read_axes(const ConfigNode& root, const std::vector<Override>& overrides, std::vector<std::string>& notes) {
  SweepPlan plan;
  if (root.has("sweep")) plan = read_sweep(root.at("sweep"));
  for (const Override& o : overrides) {
    if (o.key.starts_with("sweep.")) {
      set_axis(plan, o.key.substr(6), ConfigNode::load_text(o.value, "--set " + o.key));
      continue;
    }
    for (AxisTie& tie : plan.ties)
      std::erase_if(tie, [&](const SweepAxis& axis) {
        const bool drops = overrules(o.key, axis.key);
        if (drops && axis.key != o.key)
          notes.push_back(
              fmt::format("--set {} replaces what the axis {} would change: the axis is dropped", o.key, axis.key));
        return drops;
      });
    std::erase_if(plan.ties, [](const AxisTie& tie) { return tie.empty(); });
  }
  return plan;
}

void check_size(const ConfigNode& root, const SweepPlan& plan) {
  const ConfigNode place = root.has("sweep") ? root.at("sweep") : root;
  std::size_t product = 1, label = 0;
  for (const AxisTie& tie : plan.ties) {
    product *= tie.front().values.size();
    if (product > kMaxScenarios)
      throw place.error(fmt::format("the axes have more than {} points; sweep fewer values", kMaxScenarios));
    for (const SweepAxis& axis : tie) {
      std::size_t longest = 0;
      for (const ConfigNode& value : axis.values) longest = std::max(longest, axis_label(value).size());
      label += axis.key.size() + longest;
    }
  }
  if (product * label > kMaxLabels)
    throw place.error(
        fmt::format("{} points with values of up to {} characters; sweep fewer or shorter values", product, label));
}

/// The rules by which combinations are left out, ready to be asked.
class KeepRules {
 public:
  KeepRules(const ConfigNode& root, const SweepPlan& plan) : rules_(plan.rules), left_out_(plan.rules.size()) {
    if (rules_.empty()) return;
    for (const AxisTie& tie : plan.ties)
      for (const SweepAxis& axis : tie) names_.push_back(axis.key);
    std::vector<std::string> paths, values;
    add_scalars(root, "", paths, values);
    for (std::size_t p = 0; p < paths.size(); ++p) {
      if (std::find(names_.begin(), names_.end(), paths[p]) != names_.end()) continue;
      names_.push_back(paths[p]);
      fixed_.push_back(values[p]);
    }
    for (const KeepRule& rule : rules_) {
      try {
        conditions_.emplace_back(rule.condition, names_);
      } catch (const ConfigError& problem) {
        throw rule.place.error(problem.what());
      }
    }
  }

  bool keep(const Scenario& scenario) {
    if (rules_.empty()) return true;
    std::vector<std::string> values;
    for (const auto& [axis, label] : scenario.axes) values.push_back(label);
    values.insert(values.end(), fixed_.begin(), fixed_.end());
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      if (conditions_[r].holds(values)) continue;
      ++left_out_[r];
      return false;
    }
    return true;
  }

  /// How many were left out, and why.
  void tell(std::vector<std::string>& notes) const {
    for (std::size_t r = 0; r < rules_.size(); ++r)
      if (left_out_[r] > 0)
        notes.push_back(fmt::format("{} left out: {}", counted(left_out_[r], "combination"),
                                    rules_[r].reason.empty() ? "not " + rules_[r].condition : rules_[r].reason));
  }

 private:
  std::vector<KeepRule> rules_;
  std::vector<Condition> conditions_;
  std::vector<std::string> names_, fixed_;
  std::vector<std::size_t> left_out_;
};

Study expand(ConfigNode root, const std::vector<Override>& overrides) {
  if (!root.is_map()) throw root.error("a study is a map of keys; see docs/study-format.md");
  std::vector<std::pair<std::string, ConfigNode>> inside;  // changes of scenarios, as opposed to axes
  for (const Override& o : overrides) {
    if (o.key == "sweep") root = root.with(o.key, ConfigNode::load_text(o.value, "--set " + o.key));
    if (o.key != "sweep" && !o.key.starts_with("sweep."))
      inside.emplace_back(o.key, ConfigNode::load_text(o.value, "--set " + o.key));
  }

  Study study;
  study.name = root.at("study").as_string();
  const SweepPlan plan = read_axes(root, overrides, study.notes);
  check_size(root, plan);
  KeepRules rules(root, plan);
  for (const AxisTie& tie : plan.ties)
    for (const SweepAxis& axis : tie) study.axes.push_back(axis.key);

  bool checked = false;
  std::vector<std::size_t> at(plan.ties.size(), 0);
  while (true) {
    Scenario scenario{.study = study.name, .name = "", .axes = {}, .base = root, .settings = {}};
    for (std::size_t t = 0; t < plan.ties.size(); ++t)
      for (const SweepAxis& axis : plan.ties[t]) {
        const ConfigNode& value = axis.values[at[t]];
        scenario.axes.emplace_back(axis.key, axis_label(value));
        scenario.name += (scenario.name.empty() ? "" : ", ") + axis.key + "=" + scenario.axes.back().second;
        scenario.settings.emplace_back(axis.key, value);
      }
    scenario.settings.insert(scenario.settings.end(), inside.begin(), inside.end());
    if (!std::exchange(checked, true)) scenario.config();  // throws here what is wrong with all of them
    if (rules.keep(scenario)) study.scenarios.push_back(std::move(scenario));
    std::size_t t = plan.ties.size();
    while (t > 0 && ++at[t - 1] == plan.ties[t - 1].front().values.size()) at[--t] = 0;
    if (t == 0) break;
  }
  rules.tell(study.notes);
  if (study.scenarios.empty())
    throw root.at("sweep").error("leaves out every combination: " + study.notes.back() + "; weaken `where`");
  return study;
}

}  // namespace

ConfigNode Scenario::config() const {
  ConfigNode out = base.without("sweep");
  for (const auto& [key, value] : settings) out = set(out, key, value);
  return out;
}

Override parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw ConfigError("--set wants key=value, as in --set batch.per_worker=64, got '" + text + "'");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Study load_study(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  return expand(ConfigNode::load_file(file), overrides);
}

Study load_users_study(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  Study study = load_study(file, overrides);
  for (Scenario& scenario : study.scenarios) scenario.usual_stack = true;
  return study;
}

Study parse_study(std::string_view text, std::string name, const std::vector<Override>& overrides) {
  return expand(ConfigNode::load_text(text, std::move(name)), overrides);
}

}  // namespace epocast
