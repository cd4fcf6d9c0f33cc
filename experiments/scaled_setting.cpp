#include "experiments/scaled_setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace epocast {

std::optional<ConfigNode> node_at(const ConfigNode& config, std::string_view key) {
  ConfigNode node = config;
  for (std::size_t from = 0; from <= key.size();) {
    const std::size_t dot = std::min(key.find('.', from), key.size());
    const std::string_view part = key.substr(from, dot - from);
    if (!node.is_map() || !node.has(part)) return std::nullopt;
    node = node.at(part);
    from = dot + 1;
  }
  return node;
}

std::optional<Scenario> with_scaled(const Scenario& scenario, const ConfigNode& config, const std::string& key,
                                    double factor, std::optional<double> otherwise) {
  const std::optional<ConfigNode> given = node_at(config, key);
  if (!given)
    return otherwise ? std::optional(with_setting(scenario, key, fmt::format("{:.12g}", *otherwise * factor)))
                     : std::nullopt;
  if (!given->is_scalar()) return std::nullopt;
  const std::string text = given->as_string();
  double number = 0;
  const auto [unit, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || number == 0) return std::nullopt;
  return with_setting(scenario, key,
                      fmt::format("{:.12g}{}", number * factor, std::string(unit, text.data() + text.size())));
}

Scenario with_setting(const Scenario& scenario, const std::string& key, const std::string& value) {
  Scenario out = scenario;
  out.settings.emplace_back(key, ConfigNode::load_text(value, "a changed " + key));
  return out;
}

}  // namespace epocast
