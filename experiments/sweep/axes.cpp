#include "experiments/sweep/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace epocast {
namespace {

constexpr std::size_t kMostValues = 100'000;
constexpr std::string_view kBatchSizes[] = {"batch.global", "batch.per_replica", "batch.per_worker"};

std::string number_text(double value) {
  return std::abs(value) < 1e15 && value == std::trunc(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

/// `{from: 16, to: 128, times: 2}` or `{from: 1, to: 9, step: 2}`: the end counts if it is met.
std::vector<ConfigNode> read_range(const ConfigNode& range) {
  const double from = range.at("from").as_double(), to = range.at("to").as_double();
  if (range.has("times") == range.has("step"))
    throw range.error("a range has either step or times, as in {from: 16, to: 128, times: 2}");
  const bool grows = range.has("times");
  const ConfigNode by = range.at(grows ? "times" : "step");
  const double change = grows ? by.as_double(Range{1e-9, 1e9}) : by.as_double();
  range.check_all_read();
  const bool ahead = grows
                         ? from > 0 && to > 0 && change != 1 && (change > 1 || to <= from) && (change < 1 || to >= from)
                         : change != 0 && (to - from) / change >= 0;
  if (!ahead) throw by.error(fmt::format("does not lead from {} to {}", number_text(from), number_text(to)));
  std::vector<ConfigNode> values;
  for (std::size_t i = 0;; ++i) {
    const auto n = static_cast<double>(i);
    const double value = grows ? from * std::pow(change, n) : from + change * n;
    constexpr double kRounding = 1e-9;  // of sums and powers: 0.1 + 2 * 0.1 is beyond 0.3
    const double slack = kRounding * (grows ? to : std::abs(change));
    if ((grows ? change > 1 : change > 0) ? value > to + slack : value < to - slack) return values;
    if (values.size() == kMostValues) throw by.error(fmt::format("makes more than {} values", kMostValues));
    // Twelve digits: what the rounding of sums and powers leaves alone.
    values.push_back(ConfigNode::load_text(fmt::format("{:.12g}", value), range.where().file));
  }
}

std::vector<ConfigNode> read_values(const std::string& key, const ConfigNode& values) {
  if (values.is_map() && (values.has("from") || values.has("to"))) return read_range(values);
  if (!values.is_list() || values.items().empty())
    throw values.error("an axis is a list of one or more values, as in `" + key + ": [..]`");
  return values.items();
}

SweepAxis* find_axis(SweepPlan& plan, const std::string& key) {
  for (AxisTie& tie : plan.ties)
    for (SweepAxis& axis : tie)
      if (axis.key == key) return &axis;
  return nullptr;
}

/// Adds an axis to the last tie.
void add_axis(SweepPlan& plan, const std::string& key, const ConfigNode& values) {
  if (key == "sweep" || key == "study" || key == "schedule") throw values.error("'" + key + "' cannot be swept");
  for (const AxisTie& tie : plan.ties)
    for (const SweepAxis& other : tie) {
      if (other.key == key) throw values.error("'" + key + "' has another axis; a key can have one");
      if (replace_each_other(other.key, key))
        throw values.error(
            fmt::format("'{}' has an axis, too, and one of them would replace the other; leave one out", other.key));
    }
  plan.ties.back().push_back({key, read_values(key, values)});
}

void add_tie(SweepPlan& plan, const ConfigNode& zip) {
  if (!zip.is_map())
    throw zip.error(
        "axes that vary together are a map of lists, as in `zip: {workers: [1, 2], batch.global: [32, 64]}`");
  plan.ties.emplace_back();
  const AxisTie& tie = plan.ties.back();
  for (const std::string& key : zip.keys()) {
    const ConfigNode values = zip.at(key);
    add_axis(plan, key, values);
    if (tie.back().values.size() != tie.front().values.size())
      throw values.error(fmt::format("has {} values, but {} has {}: axes that vary together have equally many",
                                     tie.back().values.size(), tie.front().key, tie.front().values.size()));
  }
  if (tie.empty()) throw zip.error("is empty");
}

void add_rules(SweepPlan& plan, const ConfigNode& where) {
  for (const ConfigNode& rule : where.is_list() ? where.items() : std::vector<ConfigNode>{where}) {
    if (!rule.is_map()) {
      plan.rules.push_back({rule.as_string(), "", rule});
      continue;
    }
    plan.rules.push_back({rule.at("keep").as_string(), rule.get("because", ""), rule.at("keep")});
    rule.check_all_read();
  }
}

}  // namespace

bool replace_each_other(const std::string& a, const std::string& b) {
  const auto is_size = [](const std::string& key) {
    return std::ranges::find(kBatchSizes, key) != std::end(kBatchSizes);
  };
  return a != b && is_size(a) && is_size(b);
}

SweepPlan read_sweep(const ConfigNode& sweep) {
  SweepPlan plan;
  for (const std::string& key : sweep.keys()) {
    const ConfigNode values = sweep.at(key);
    if (key == "zip" && !values.is_list()) {
      add_tie(plan, values);
    } else if (key == "zip") {
      for (const ConfigNode& zip : values.items()) add_tie(plan, zip);
    } else if (key == "where") {
      add_rules(plan, values);
    } else {
      plan.ties.emplace_back();
      add_axis(plan, key, values);
    }
  }
  return plan;
}

void set_axis(SweepPlan& plan, const std::string& key, const ConfigNode& values) {
  if (key == "zip") return add_tie(plan, values);
  if (key == "where") {
    plan.rules.clear();
    return add_rules(plan, values);
  }
  if (SweepAxis* const same = find_axis(plan, key)) {
    std::vector<ConfigNode> read = read_values(key, values);
    for (const AxisTie& tie : plan.ties)
      if (tie.size() > 1 && read.size() != same->values.size() &&
          std::ranges::any_of(tie, [&](const SweepAxis& axis) { return &axis == same; }))
        throw values.error(
            fmt::format("{} values, but the axis is tied to others of {}", read.size(), same->values.size()));
    same->values = std::move(read);
    return;
  }
  plan.ties.emplace_back();
  add_axis(plan, key, values);
}

std::string axis_label(const ConfigNode& value) {
  if (value.is_map() && value.has("cluster")) return value.at("cluster").as_string();
  if (!value.is_map() || !value.has("name")) return value.flow_text();
  std::string settings;
  for (const std::string& key : value.keys())
    if (key != "name") settings += (settings.empty() ? "" : " ") + key + "=" + value.at(key).flow_text();
  const std::string name = value.at("name").as_string();
  return settings.empty() ? name : name + "(" + settings + ")";
}

void add_scalars(const ConfigNode& config, const std::string& path, std::map<std::string, std::string>& values) {
  if (config.is_map()) {
    for (const std::string& key : config.keys())
      if (path.empty() ? key != "sweep" : true)
        add_scalars(config.at(key), path.empty() ? key : path + "." + key, values);
  } else if (config.is_scalar() && !config.is_null()) {
    values[path] = config.as_string();
  }
}

}  // namespace epocast
