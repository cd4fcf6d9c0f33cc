#include "experiments/seeds.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace epocast {
namespace {

using nlohmann::ordered_json;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The values of a column that every run has as a number that may be a fraction; empty for other columns.
std::vector<double> values_of(const std::vector<ordered_json>& rows, const std::string& column) {
  std::vector<double> values;
  for (const ordered_json& row : rows)
    if (row.at(column).is_number_float()) values.push_back(row.at(column).get<double>());
  return values.size() == rows.size() ? values : std::vector<double>{};
}

std::vector<ordered_json> rows_of(const std::vector<ScenarioResult>& runs) {
  std::vector<ordered_json> rows;
  for (const ScenarioResult& run : runs) rows.push_back(columns_of(run));
  return rows;
}

}  // namespace

double confidence_half_width(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double center = mean(values);
  const auto n = static_cast<double>(values.size());
  double square = 0;
  for (const double v : values) square += (v - center) * (v - center);
  const double t = boost::math::quantile(boost::math::students_t(n - 1), 0.975);
  return t * std::sqrt(square / (n - 1) / n);
}

ScenarioResult mean_over_seeds(const std::vector<ScenarioResult>& runs) {
  ScenarioResult out = runs.front();
  if (runs.size() == 1) return out;
  const std::vector<ordered_json> rows = rows_of(runs);
  ordered_json columns = rows.front();
  for (auto& item : columns.items()) {
    const std::string& column = item.key();
    auto& value = item.value();
    // A mean of those that have it would be of other runs than the rest of the row is.
    if (std::ranges::any_of(rows, [&](const ordered_json& row) { return row.at(column).is_null(); }))
      value = nullptr;
    else if (const std::vector<double> values = values_of(rows, column); !values.empty())
      value = mean(values);
  }
  set_columns(out, columns);
  std::vector<double> iterations;
  out.iterations_simulated = 0;
  for (const ScenarioResult& run : runs) {
    iterations.push_back(run.iteration_s);
    out.iterations_simulated += run.iterations_simulated;
    if (out.max_staleness) out.max_staleness = std::max(*out.max_staleness, run.max_staleness.value_or(0));
    out.exact = out.exact && run.exact;
  }
  out.iteration_ci95 = confidence_half_width(iterations);
  return out;
}

ordered_json seeds_section(const std::vector<ScenarioResult>& runs, const std::vector<std::uint64_t>& seeds) {
  const std::vector<ordered_json> rows = rows_of(runs);
  ordered_json section;
  section["seeds"] = seeds;
  for (const auto& [column, value] : rows.front().items()) {
    const std::vector<double> values = values_of(rows, column);
    if (values.empty()) continue;
    section[column] = {{"mean", mean(values)}, {"ci95", confidence_half_width(values)}, {"values", values}};
  }
  return section;
}

}  // namespace epocast
