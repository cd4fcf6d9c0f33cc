#include "experiments/reproduce/target.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>

#include "experiments/reproduce/eserol2019/targets.hpp"
#include "experiments/reproduce/gpipe/targets.hpp"
#include "experiments/reproduce/lee2020/targets.hpp"
#include "experiments/reproduce/pardnn2020/targets.hpp"

namespace epocast {

const char* to_string(Role role) {
  switch (role) {
    case Role::exact: return "exact";
    case Role::input: return "input";
    case Role::predicted: break;
  }
  return "predicted";
}

std::optional<double> TargetRow::error_pct() const {
  if (!published) return std::nullopt;
  if (*published == 0) return simulated == 0 ? 0 : std::numeric_limits<double>::infinity();
  return 100 * (simulated - *published) / std::abs(*published);
}

bool TargetRow::matches() const { return !published || std::abs(simulated - *published) <= tolerance; }

std::vector<Target> builtin_targets() {
  return {eserol2019::table_5_14(),
          eserol2019::table_5_15_data_parallel(),
          lee2020::chapter3(),
          lee2020::chapter4(),
          pardnn2020::node_counts(),
          eserol2019::table_5_15_model_parallel(),
          eserol2019::time_to_accuracy(),
          gpipe::bubble()};
}

TargetSummary summarize(const std::vector<TargetRow>& rows, std::optional<double> mape_bound) {
  TargetSummary out;
  out.bound = mape_bound;
  std::map<std::pair<std::string, std::string>, Role> seen;
  double sum = 0;
  for (const TargetRow& row : rows) {
    const auto [first, is_new] = seen.emplace(std::pair(row.row, row.quantity), row.role);
    if (!is_new)
      throw std::logic_error("target has '" + row.row + ": " + row.quantity + "' twice, as " +
                             to_string(first->second) + " and as " + to_string(row.role));
    if (row.role == Role::predicted) {
      if (!row.published) throw std::logic_error("target predicts '" + row.row + "' without a published number");
      const double error = std::abs(*row.error_pct());
      ++out.predicted;
      sum += error;
      if (!out.worst || !(error <= std::abs(*out.worst->error_pct()))) out.worst = row;
    } else if (row.published) {
      ++(row.role == Role::exact ? out.exact : out.inputs);
      if (row.matches()) ++(row.role == Role::exact ? out.exact_matched : out.inputs_matched);
    }
  }
  if (out.predicted > 0) out.mape = sum / out.predicted;
  return out;
}

}  // namespace epocast
