#include "experiments/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

/// Sets a key of a scenario. One size of the batch drops the others.
ConfigNode set(const ConfigNode& config, const std::string& key, const ConfigNode& value) {
  if (key.starts_with("strategy.") && key != "strategy.name")
    return spelled_out(config, "strategy", "name", value, kDefaultStrategy).with(key, value);
  if (key.starts_with("stack.") && key != "stack.name")
    return spelled_out(config, "stack", "name", value, kDefaultStack).with(key, value);
  if (key.starts_with("compute.")) return spelled_out(config, "compute", "cost_model", value, nullptr).with(key, value);
  if (key.starts_with("batch.") && config.has("batch") && config.at("batch").is_map()) {
    ConfigNode batch = config.at("batch");
    for (const std::string& other : batch.keys())
      if (replace_each_other("batch." + other, key)) batch = batch.without(other);
    return config.with("batch", batch).with(key, value);
  }
  return config.with(key, value);
}

/// Whether setting `key` makes an axis over `axis` pointless: it is the same key, one inside it, or another size of
/// the batch.
bool overrules(const std::string& key, const std::string& axis) {
  return axis == key || axis.starts_with(key + ".") || replace_each_other(axis, key);
}

using Settings = std::vector<std::pair<std::string, ConfigNode>>;

/// The study's axes as the command line changes them: `--set sweep.KEY=[..]` gives an axis new values or adds one,
/// `--set KEY=value` removes it. Adds to `settings` what is set in all scenarios, to `notes` which axes are removed
/// though they have another name. What is said later holds.
SweepPlan read_axes(const ConfigNode& root, const std::vector<Override>& overrides, Settings& settings,
                    std::vector<std::string>& notes) {
  SweepPlan plan;
  if (root.has("sweep")) plan = read_sweep(root.at("sweep"));
  for (const Override& o : overrides) {
    if (o.key == "sweep") continue;  // the root has it
    const ConfigNode value = ConfigNode::load_text(o.value, "--set " + o.key);
    const bool is_axis = o.key.starts_with("sweep.");
    const std::string key = is_axis ? o.key.substr(6) : o.key;
    for (AxisTie& tie : plan.ties)
      std::erase_if(tie, [&](const SweepAxis& axis) {
        const bool drops = is_axis ? replace_each_other(axis.key, key) : overrules(key, axis.key);
        if (drops && axis.key != key)
          notes.push_back(
              fmt::format("--set {} replaces what the axis {} would change: the axis is dropped", o.key, axis.key));
        return drops;
      });
    std::erase_if(plan.ties, [](const AxisTie& tie) { return tie.empty(); });
    if (!is_axis) {
      settings.emplace_back(key, value);
      continue;
    }
    set_axis(plan, key, value);
    for (const AxisTie& tie : plan.ties)
      for (const SweepAxis& axis : tie)
        std::erase_if(settings, [&](const auto& setting) {
          return setting.first == axis.key || replace_each_other(setting.first, axis.key);
        });
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
  /// `settings`: of all scenarios.
  KeepRules(const ConfigNode& root, const SweepPlan& plan, const Settings& settings)
      : rules_(plan.rules), left_out_(plan.rules.size()) {
    if (rules_.empty()) return;
    std::map<std::string, std::string> fixed;
    add_scalars(root, "", fixed);
    for (const AxisTie& tie : plan.ties)
      for (const SweepAxis& axis : tie)  // what is inside a key that varies is there in no scenario, or in some
        std::erase_if(fixed, [&](const auto& f) { return (f.first + ".").starts_with(axis.key + "."); });
    for (const auto& setting : settings) {
      std::erase_if(fixed, [&](const auto& f) { return overrules(setting.first, f.first); });
      add_scalars(setting.second, setting.first, fixed);
    }
    std::vector<std::string> names;
    for (std::size_t t = 0; t < plan.ties.size(); ++t)
      for (const SweepAxis& axis : plan.ties[t]) {
        names.push_back(axis.key);
        fixed.erase(axis.key);
        tie_.push_back(t);
        values_.emplace_back();
        for (const ConfigNode& value : axis.values)
          values_.back().push_back(value.is_scalar() ? value.as_string() : axis_label(value));
      }
    for (const auto& [name, value] : fixed) {
      names.push_back(name);
      values_.push_back({value});
    }
    for (const KeepRule& rule : rules_) {
      try {
        conditions_.emplace_back(rule.condition, names, values_);
      } catch (const ConfigError& problem) {
        throw rule.place.error(problem.what());
      }
    }
  }

  /// `at`: which value of each tie.
  bool keep(const std::vector<std::size_t>& at) {
    if (rules_.empty()) return true;
    std::vector<std::string> values;
    for (std::size_t n = 0; n < values_.size(); ++n) values.push_back(values_[n][n < tie_.size() ? at[tie_[n]] : 0]);
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
  std::vector<std::vector<std::string>> values_;  ///< of each name: one if it does not vary
  std::vector<std::size_t> tie_;                  ///< of each name that varies; they come first
  std::vector<std::size_t> left_out_;
};

Study expand(ConfigNode root, const std::vector<Override>& overrides) {
  if (!root.is_map()) throw root.error("a study is a map of keys; see docs/study-format.md");
  for (const Override& o : overrides)
    if (o.key == "sweep") root = root.with(o.key, ConfigNode::load_text(o.value, "--set " + o.key));

  Study study;
  study.name = root.at("study").as_string();
  Settings of_all;
  const SweepPlan plan = read_axes(root, overrides, of_all, study.notes);
  check_size(root, plan);
  KeepRules rules(root, plan, of_all);
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
    scenario.settings.insert(scenario.settings.end(), of_all.begin(), of_all.end());
    // A key replaces all that is inside it, so it is set before that, whatever the order of axes.
    std::ranges::stable_sort(scenario.settings, {},
                             [](const auto& setting) { return std::ranges::count(setting.first, '.'); });
    if (!std::exchange(checked, true)) scenario.config();  // throws here what is wrong with all of them
    if (rules.keep(at)) study.scenarios.push_back(std::move(scenario));
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
