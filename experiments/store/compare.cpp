#include "experiments/store/compare.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/config.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

constexpr const char* kMoreIsBetter[] = {"samples_per_s", "speedup", "efficiency", "overlap_ratio", "accuracy",
                                         "tokens_per_s",  "mfu",     "hfu",        "goodput"};

std::string json_text(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool equal(const ordered_json& a, const ordered_json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  const double x = a.get<double>(), y = b.get<double>();
  return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

bool is_worse(const RegressionRule& rule, const ordered_json& before, const ordered_json& after) {
  if (before.is_boolean()) return before.get<bool>() && !(after.is_boolean() && after.get<bool>());
  if (!before.is_number()) return false;
  if (!after.is_number()) return true;
  const double was = before.get<double>(), is = after.get<double>(), slack = rule.tolerance * std::abs(was);
  const bool more_is_better = std::ranges::find(kMoreIsBetter, rule.column) != std::end(kMoreIsBetter);
  return more_is_better ? is < was - slack : is > was + slack;
}

}  // namespace

RegressionRule parse_regression_rule(const std::string& text) {
  const std::size_t blank = text.find_first_of(" =");
  const std::string column = text.substr(0, blank);
  std::vector<std::string> names;
  const ordered_json columns = columns_of(ScenarioResult{});
  for (const auto& [name, value] : columns.items()) names.push_back(name);
  if (std::find(names.begin(), names.end(), column) == names.end())
    throw ConfigError("--fail-on: no column '" + column + "'" + name_hint(column, names));
  if (columns.at(column).is_string() || columns.at(column).is_array())
    throw ConfigError("--fail-on: column '" + column + "' holds words, which are not better or worse");
  RegressionRule rule{column, 0};
  if (blank == std::string::npos) return rule;
  const std::string amount = trimmed(text.substr(blank + 1));
  std::size_t read = 0;
  try {
    rule.tolerance = std::stod(amount, &read) / 100;
  } catch (const std::exception&) {
    read = std::string::npos;
  }
  if (read == std::string::npos || trimmed(amount.substr(read)) != "%" || !(rule.tolerance >= 0))
    throw ConfigError("--fail-on wants a column and how much worse it may get, as in 'iteration_s 1 %', got '" + text +
                      "'");
  return rule;
}

std::vector<Difference> compare(const std::vector<StoredRow>& before, const std::vector<StoredRow>& after,
                                const std::vector<RegressionRule>& rules) {
  std::map<std::pair<std::string, std::string>, const StoredRow*> there;
  for (const StoredRow& row : after) there[{row.study, row.scenario}] = &row;
  std::vector<Difference> out;
  for (const StoredRow& was : before) {
    const auto found = there.find({was.study, was.scenario});
    if (found == there.end()) {
      out.push_back({was.study, was.scenario, "row", json_text("there"), json_text(nullptr), true});
      continue;
    }
    const StoredRow& is = *found->second;
    if (was.error != is.error)
      out.push_back({was.study, was.scenario, "error", json_text(was.error), json_text(is.error), was.error.empty()});
    const ordered_json a = columns_of(was.result()), b = columns_of(is.result());
    if (!was.columns.empty() && !is.columns.empty())
      for (const auto& [column, value] : a.items()) {
        if (column == "warnings" || column == "iterations_simulated" || equal(value, b.at(column))) continue;
        Difference difference{was.study, was.scenario, column, json_text(value), json_text(b.at(column))};
        for (const RegressionRule& rule : rules)
          difference.worse |= rule.column == column && is_worse(rule, value, b.at(column));
        out.push_back(std::move(difference));
      }
    there.erase(found);
  }
  for (const StoredRow& row : after)
    if (there.contains({row.study, row.scenario}))
      out.push_back({row.study, row.scenario, "row", json_text(nullptr), json_text("there"), false});
  return out;
}

}  // namespace epocast
