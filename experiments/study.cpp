#include "experiments/study.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace epocast {
namespace {

constexpr std::size_t kMaxScenarios = 100'000;
// Each scenario holds its own copy of the study, about a hundred times as large in memory as its text.
constexpr std::size_t kMaxTextOfAll = 8'000'000;

/// A short label for an axis value: "4", "data_parallel", "parameter_server(mode=async)".
std::string axis_label(const ConfigNode& value) {
  if (!value.is_map() || !value.has("name")) return value.flow_text();
  std::string settings;
  for (const std::string& key : value.keys())
    if (key != "name") settings += (settings.empty() ? "" : " ") + key + "=" + value.at(key).flow_text();
  const std::string name = value.at("name").as_string();
  return settings.empty() ? name : name + "(" + settings + ")";
}

/// `batch.global` and `batch.per_worker` say the same thing twice: setting one drops the other.
ConfigNode set(const ConfigNode& config, const std::string& key, const ConfigNode& value) {
  const auto drop = [&](const char* other) {
    if (!config.has("batch")) return config;
    const ConfigNode batch = config.at("batch");
    return batch.is_map() ? config.with("batch", batch.without(other)) : config;
  };
  if (key == "batch.global") return drop("per_worker").with(key, value);
  if (key == "batch.per_worker") return drop("global").with(key, value);
  return config.with(key, value);
}

Study expand(ConfigNode root, const std::vector<Override>& overrides) {
  if (!root.is_map()) throw root.error("a study is a map of keys; see docs/study-format.md");
  for (const Override& o : overrides) root = set(root, o.key, ConfigNode::load_text(o.value, "--set " + o.key));

  Study study;
  study.name = root.at("study").as_string();
  std::vector<std::pair<std::string, std::vector<ConfigNode>>> axes;
  const ConfigNode base = root.without("sweep");
  if (root.has("sweep")) {
    const ConfigNode sweep = root.at("sweep");
    std::size_t product = 1, text = base.flow_text().size();
    for (const std::string& key : sweep.keys()) {
      const ConfigNode values = sweep.at(key);
      if (!values.is_list() || values.items().empty())
        throw values.error("an axis is a list of one or more values, as in `" + key + ": [..]`");
      if (key == "sweep" || key == "study" || key == "schedule") throw values.error("'" + key + "' cannot be swept");
      axes.emplace_back(key, values.items());
      study.axes.push_back(key);
      product *= values.items().size();
      if (product > kMaxScenarios)
        throw sweep.error(fmt::format("the axes have more than {} points; sweep fewer values", kMaxScenarios));
      std::size_t longest = 0;
      for (const ConfigNode& value : values.items()) longest = std::max(longest, key.size() + value.flow_text().size());
      text += longest;
    }
    if (product * text > kMaxTextOfAll)
      throw sweep.error(
          fmt::format("the axes have {} points, too many for a study of {} bytes; sweep fewer values", product, text));
  }

  std::vector<std::size_t> at(axes.size(), 0);
  while (true) {
    Scenario scenario{study.name, "", {}, base};
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const ConfigNode& value = axes[a].second[at[a]];
      scenario.axes.emplace_back(axes[a].first, axis_label(value));
      scenario.name += (a == 0 ? "" : ", ") + axes[a].first + "=" + scenario.axes.back().second;
      scenario.config = set(scenario.config, axes[a].first, value);
    }
    study.scenarios.push_back(std::move(scenario));
    std::size_t a = axes.size();
    while (a > 0 && ++at[a - 1] == axes[a - 1].second.size()) at[--a] = 0;
    if (a == 0) return study;
  }
}

}  // namespace

Override parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw ConfigError("--set wants key=value, as in --set batch.per_worker=64, got '" + text + "'");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Study load_study(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  return expand(ConfigNode::load_file(file), overrides);
}

Study parse_study(std::string_view text, std::string name, const std::vector<Override>& overrides) {
  return expand(ConfigNode::load_text(text, std::move(name)), overrides);
}

}  // namespace epocast
