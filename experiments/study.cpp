#include "experiments/study.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/default_strategy.hpp"

namespace epocast {
namespace {

constexpr const char* kDefaultStack = "ideal";
constexpr std::size_t kMaxScenarios = 100'000;
constexpr std::size_t kMaxLabels = 400'000'000;  // bytes of all scenarios' names: 4,000 each at the most scenarios

/// A short label for an axis value: "4", "data_parallel", "parameter_server(mode=async)".
std::string axis_label(const ConfigNode& value) {
  if (!value.is_map() || !value.has("name")) return value.flow_text();
  std::string settings;
  for (const std::string& key : value.keys())
    if (key != "name") settings += (settings.empty() ? "" : " ") + key + "=" + value.at(key).flow_text();
  const std::string name = value.at("name").as_string();
  return settings.empty() ? name : name + "(" + settings + ")";
}

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

struct SweepAxis {
  std::string key;
  std::vector<ConfigNode> values;
};

/// Whether setting `key` makes an axis over `axis` pointless: it is the same key, one inside it, or the other way to
/// give the batch size.
bool overrules(const std::string& key, const std::string& axis) {
  const bool same_batch = key.starts_with("batch.") && axis.starts_with("batch.");
  return axis == key || axis.starts_with(key + ".") || same_batch;
}

void add_axis(std::vector<SweepAxis>& axes, const std::string& key, const ConfigNode& values) {
  if (!values.is_list() || values.items().empty())
    throw values.error("an axis is a list of one or more values, as in `" + key + ": [..]`");
  if (key == "sweep" || key == "study" || key == "schedule") throw values.error("'" + key + "' cannot be swept");
  const auto same = std::find_if(axes.begin(), axes.end(), [&](const SweepAxis& axis) { return axis.key == key; });
  if (same != axes.end())
    same->values = values.items();
  else
    axes.push_back({key, values.items()});
}

/// The study's axes as the command line changes them: `--set sweep.KEY=[..]` gives an axis new values or adds one,
/// `--set KEY=value` removes it. Adds to `notes` what is removed though it has another name.
std::vector<SweepAxis> read_axes(const ConfigNode& root, const std::vector<Override>& overrides,
                                 std::vector<std::string>& notes) {
  std::vector<SweepAxis> axes;
  if (root.has("sweep")) {
    const ConfigNode sweep = root.at("sweep");
    for (const std::string& key : sweep.keys()) add_axis(axes, key, sweep.at(key));
  }
  for (const Override& o : overrides) {
    if (o.key.starts_with("sweep."))
      add_axis(axes, o.key.substr(6), ConfigNode::load_text(o.value, "--set " + o.key));
    else
      std::erase_if(axes, [&](const SweepAxis& axis) {
        const bool drops = overrules(o.key, axis.key);
        if (drops && axis.key != o.key)
          notes.push_back(
              fmt::format("--set {} replaces what the axis {} would change: the axis is dropped", o.key, axis.key));
        return drops;
      });
  }
  return axes;
}

void check_size(const ConfigNode& root, const std::vector<SweepAxis>& axes) {
  const ConfigNode place = root.has("sweep") ? root.at("sweep") : root;
  std::size_t product = 1, label = 0;
  for (const SweepAxis& axis : axes) {
    product *= axis.values.size();
    if (product > kMaxScenarios)
      throw place.error(fmt::format("the axes have more than {} points; sweep fewer values", kMaxScenarios));
    std::size_t longest = 0;
    for (const ConfigNode& value : axis.values) longest = std::max(longest, axis_label(value).size());
    label += axis.key.size() + longest;
  }
  if (product * label > kMaxLabels)
    throw place.error(
        fmt::format("{} points with values of up to {} characters; sweep fewer or shorter values", product, label));
}

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
  const std::vector<SweepAxis> axes = read_axes(root, overrides, study.notes);
  check_size(root, axes);
  for (const SweepAxis& axis : axes) study.axes.push_back(axis.key);

  std::vector<std::size_t> at(axes.size(), 0);
  while (true) {
    Scenario scenario{.study = study.name, .name = "", .axes = {}, .base = root, .settings = {}};
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const ConfigNode& value = axes[a].values[at[a]];
      scenario.axes.emplace_back(axes[a].key, axis_label(value));
      scenario.name += (a == 0 ? "" : ", ") + axes[a].key + "=" + scenario.axes.back().second;
      scenario.settings.emplace_back(axes[a].key, value);
    }
    scenario.settings.insert(scenario.settings.end(), inside.begin(), inside.end());
    if (study.scenarios.empty()) scenario.config();  // throws here what is wrong with all of them
    study.scenarios.push_back(std::move(scenario));
    std::size_t a = axes.size();
    while (a > 0 && ++at[a - 1] == axes[a - 1].values.size()) at[--a] = 0;
    if (a == 0) return study;
  }
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
