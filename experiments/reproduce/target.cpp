#include "experiments/reproduce/target.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "experiments/reproduce/deepa/targets.hpp"
#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/gpipe/targets.hpp"
#include "experiments/reproduce/hermans2017/targets.hpp"
#include "experiments/reproduce/lee2020/targets.hpp"
#include "experiments/reproduce/pardnn2020/targets.hpp"
#include "sim/quantile.hpp"

namespace epocast {

const char* to_string(Role role) {
  switch (role) {
    case Role::exact: return "exact";
    case Role::input: return "input";
    case Role::bound: return "bound";
    case Role::stated: return "stated";
    case Role::predicted: break;
  }
  return "predicted";
}

namespace {

double percent_off(double value, double published) {
  if (published == 0) return value == 0 ? 0 : std::numeric_limits<double>::infinity();
  return 100 * (value - published) / std::abs(published);
}

/// The least mean error of one number for all, in percent. As a function of that number the error is linear between
/// published values, so that one of them is the best.
double constant_mape(const std::vector<double>& published) {
  double least = std::numeric_limits<double>::infinity();
  for (const double constant : published) {
    double sum = 0;
    for (const double value : published) sum += std::abs(percent_off(constant, value));
    least = std::min(least, sum / static_cast<double>(published.size()));
  }
  return least;
}

/// Of the rows that are predictions, and marked as seen or not.
PredictionErrors prediction_errors(const std::vector<TargetRow>& rows, bool seen) {
  PredictionErrors out;
  double sum = 0, trivial_sum = 0;
  bool all_trivial = true;
  std::map<std::pair<std::string, std::string>, std::vector<double>> published;  // by quantity and unit
  for (const TargetRow& row : rows) {
    if (row.role != Role::predicted || row.seen != seen) continue;
    ++out.cells;
    sum += std::abs(*row.error_pct());
    all_trivial &= row.trivial.has_value();
    if (row.trivial) trivial_sum += std::abs(*row.trivial_error_pct());
    published[{row.quantity, row.unit}].push_back(*row.published);
  }
  if (out.cells == 0) return out;
  out.mape = sum / out.cells;
  if (all_trivial) out.trivial_mape = trivial_sum / out.cells;
  double constant_sum = 0;
  for (const auto& [quantity, values] : published) {
    if (std::ranges::all_of(values, [first = values.front()](double value) { return value == first; })) return out;
    constant_sum += constant_mape(values) * static_cast<double>(values.size());
  }
  out.constant_mape = constant_sum / out.cells;
  return out;
}

}  // namespace

std::optional<double> TargetRow::error_pct() const {
  if (!published) return std::nullopt;
  return percent_off(simulated, *published);
}

std::optional<double> TargetRow::trivial_error_pct() const {
  if (!published || !trivial) return std::nullopt;
  return percent_off(*trivial, *published);
}

bool TargetRow::matches() const {
  if (!published || fitted) return true;
  if (role == Role::bound) return simulated <= *published + tolerance;
  if (role == Role::stated) {
    constexpr double kRounding = 1 + 1e-9;
    return simulated <= *published * factor * kRounding && simulated * factor * kRounding >= *published;
  }
  return std::abs(simulated - *published) <= tolerance;
}

std::vector<Target> builtin_targets() {
  using namespace eserol2019;
  std::vector<Target> out{table_5_1(), table_5_2(), table_5_3(), table_5_4(), table_5_5(), table_5_6(), table_5_8()};
  for (const Target& target : hypergraph_tables()) out.push_back(target);
  for (const Target& target : {table_5_13(),
                               table_5_14(),
                               table_5_15_data_parallel(),
                               table_5_15_model_parallel(),
                               time_to_accuracy(),
                               lee2020::chapter3(),
                               lee2020::chapter4(),
                               lee2020::chapter5(),
                               lee2020::equations(),
                               deepa::table_1(),
                               deepa::table_2(),
                               deepa::table_3(),
                               deepa::figures(),
                               deepa::a3(),
                               deepa::imagenet22k(),
                               hermans2017::algorithms(),
                               hermans2017::experiments(),
                               pardnn2020::node_counts(),
                               pardnn2020::parameters(),
                               pardnn2020::complexity(),
                               pardnn2020::graph_facts(),
                               pardnn2020::placement_facts(),
                               pardnn2020::largest_batches(),
                               gpipe::bubble()})
    out.push_back(target);
  return out;
}

ErrorQuantiles error_quantiles(const std::vector<TargetRow>& rows) {
  std::vector<double> errors, trivial;
  for (const TargetRow& row : rows) {
    if (row.role != Role::predicted) continue;
    errors.push_back(std::abs(*row.error_pct()));
    if (row.trivial) trivial.push_back(std::abs(*row.trivial_error_pct()));
  }
  ErrorQuantiles out{.cells = static_cast<int>(errors.size()),
                     .median = median(errors),
                     .ninetieth = quantile(errors, 0.9),
                     .trivial_median = std::nullopt,
                     .trivial_ninetieth = std::nullopt};
  if (trivial.empty()) return out;
  out.trivial_median = median(trivial);
  out.trivial_ninetieth = quantile(trivial, 0.9);
  return out;
}

std::optional<double> ErrorQuantiles::share_of_trivial() const {
  if (!trivial_median || *trivial_median == 0) return std::nullopt;
  return 100 * median / *trivial_median;
}

std::vector<QuantileBound> quantile_bounds(const TargetSummary& summary) {
  std::vector<QuantileBound> out;
  const auto add = [&](const char* what, std::optional<double> bound, std::optional<double> reached) {
    if (bound) out.push_back({what, *bound, summary.quantiles.cells > 0 ? reached : std::nullopt});
  };
  add(kMedian, summary.asked.median, summary.quantiles.median);
  add(kNinetieth, summary.asked.ninetieth, summary.quantiles.ninetieth);
  add(kShareOfTrivial, summary.asked.share_of_trivial, summary.quantiles.share_of_trivial());
  return out;
}

bool TargetSummary::quantiles_met() const { return std::ranges::all_of(quantile_bounds(*this), &QuantileBound::met); }

TargetSummary summarize(const std::vector<TargetRow>& rows, std::optional<double> mape_bound,
                        const TargetBounds& bounds) {
  TargetSummary out;
  out.asked = bounds;
  out.bound = mape_bound;
  std::map<std::pair<std::string, std::string>, Role> known;
  double sum = 0, fitted_sum = 0;
  const auto count = [](const TargetRow& row, int& all, int& matched) {
    ++all;
    if (row.matches()) ++matched;
  };
  for (const TargetRow& row : rows) {
    const auto [first, is_new] = known.emplace(std::pair(row.row, row.quantity), row.role);
    if (!is_new)
      throw std::logic_error("target has '" + row.name() + "' twice, as " + to_string(first->second) + " and as " +
                             to_string(row.role));
    if ((row.role == Role::predicted || row.role == Role::bound || row.fitted) && !row.published)
      throw std::logic_error("target has '" + row.name() + "' as " + to_string(row.role) +
                             " without a published number");
    if (row.fitted && row.role != Role::input)
      throw std::logic_error("target fits something to '" + row.name() + "', which is no input");
    if (row.seen && row.role != Role::predicted)
      throw std::logic_error("target marks '" + row.name() + "' as seen, which is no prediction");
    if (!row.published) continue;
    switch (row.role) {
      case Role::exact: count(row, out.exact, out.exact_matched); break;
      case Role::stated: count(row, out.stated, out.stated_matched); break;
      case Role::bound:
        count(row, out.bounds, out.bounds_kept);
        if (!out.most_above || !(*row.error_pct() <= *out.most_above->error_pct())) out.most_above = row;
        break;
      case Role::predicted:
        ++out.predicted;
        sum += std::abs(*row.error_pct());
        if (!out.worst || !(std::abs(*row.error_pct()) <= std::abs(*out.worst->error_pct()))) out.worst = row;
        break;
      case Role::input:
        if (!row.fitted) {
          count(row, out.inputs, out.inputs_matched);
          break;
        }
        ++out.fitted;
        fitted_sum += std::abs(*row.error_pct());
        break;
    }
  }
  if (out.fitted > 0) out.fitted_mape = fitted_sum / out.fitted;
  if (out.predicted > 0) out.mape = sum / out.predicted;
  out.blind = prediction_errors(rows, false);
  out.seen = prediction_errors(rows, true);
  out.quantiles = error_quantiles(rows);
  return out;
}

}  // namespace epocast
