#include "experiments/reproduce/target.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/gpipe/targets.hpp"
#include "experiments/reproduce/hermans2017/targets.hpp"
#include "experiments/reproduce/lee2020/targets.hpp"
#include "experiments/reproduce/pardnn2020/targets.hpp"

namespace epocast {

const char* to_string(Role role) {
  switch (role) {
    case Role::exact: return "exact";
    case Role::input: return "input";
    case Role::bound: return "bound";
    case Role::predicted: break;
  }
  return "predicted";
}

std::optional<double> TargetRow::error_pct() const {
  if (!published) return std::nullopt;
  if (*published == 0) return simulated == 0 ? 0 : std::numeric_limits<double>::infinity();
  return 100 * (simulated - *published) / std::abs(*published);
}

bool TargetRow::matches() const {
  if (!published || fitted) return true;
  if (role == Role::bound) return simulated <= *published + tolerance;
  return std::abs(simulated - *published) <= tolerance;
}

bool TargetSummary::bounds_met() const {
  if (bounds == 0) return true;
  return bounds_kept >= bound_rule->least_share * bounds && *most_above->error_pct() <= bound_rule->most_above;
}

std::vector<Target> builtin_targets() {
  using namespace eserol2019;
  std::vector<Target> out{table_5_1(), table_5_2(), table_5_3(), table_5_4(), table_5_5(), table_5_6(), table_5_8()};
  for (const Target& target : hypergraph_tables()) out.push_back(target);
  for (const Target& target : {table_5_13(), table_5_14(), table_5_15_data_parallel(), table_5_15_model_parallel(),
                               time_to_accuracy(), lee2020::chapter3(), lee2020::chapter4(), lee2020::equations(),
                               hermans2017::algorithms(), pardnn2020::node_counts(), gpipe::bubble()})
    out.push_back(target);
  return out;
}

TargetSummary summarize(const std::vector<TargetRow>& rows, std::optional<double> mape_bound,
                        std::optional<BoundRule> bounds) {
  TargetSummary out;
  out.bound = mape_bound;
  out.bound_rule = bounds;
  std::map<std::pair<std::string, std::string>, Role> seen;
  double sum = 0, fitted_sum = 0;
  for (const TargetRow& row : rows) {
    const auto [first, is_new] = seen.emplace(std::pair(row.row, row.quantity), row.role);
    if (!is_new)
      throw std::logic_error("target has '" + row.row + ": " + row.quantity + "' twice, as " +
                             to_string(first->second) + " and as " + to_string(row.role));
    if (row.role == Role::predicted && !row.fitted) {
      if (!row.published) throw std::logic_error("target predicts '" + row.row + "' without a published number");
      const double error = std::abs(*row.error_pct());
      ++out.predicted;
      sum += error;
      if (!out.worst || !(error <= std::abs(*out.worst->error_pct()))) out.worst = row;
    } else if (row.role == Role::bound) {
      if (!row.published) throw std::logic_error("target bounds '" + row.row + "' without a published number");
      if (!bounds) throw std::logic_error("target has bounds, but no rule for them");
      ++out.bounds;
      if (row.matches()) ++out.bounds_kept;
      if (!out.most_above || !(*row.error_pct() <= *out.most_above->error_pct())) out.most_above = row;
    } else if (row.fitted) {
      if (row.role != Role::input || !row.published)
        throw std::logic_error("target fits something to '" + row.row + ": " + row.quantity +
                               "', which is no published input");
      ++out.fitted;
      fitted_sum += std::abs(*row.error_pct());
    } else if (row.published) {
      ++(row.role == Role::exact ? out.exact : out.inputs);
      if (row.matches()) ++(row.role == Role::exact ? out.exact_matched : out.inputs_matched);
    }
  }
  if (out.fitted > 0) out.fitted_mape = fitted_sum / out.fitted;
  if (out.predicted > 0) out.mape = sum / out.predicted;
  return out;
}

}  // namespace epocast
