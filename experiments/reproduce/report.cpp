#include "experiments/reproduce/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "experiments/output.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

ordered_json number(std::optional<double> value) { return value ? ordered_json(*value) : ordered_json(nullptr); }

/// The documented columns, in order.
ordered_json to_json(const TargetResult& result, const TargetRow& row) {
  return {{"paper", result.paper},
          {"target", result.table},
          {"row", row.row},
          {"quantity", row.quantity},
          {"unit", row.unit},
          {"published", number(row.published)},
          {"simulated", row.simulated},
          {"error_pct", number(row.error_pct())},
          {"role", to_string(row.role)}};
}

/// Whole numbers, or what differs from one by rounding, as they are; others with two digits after the point.
std::string short_number(double value) {
  const bool whole = std::abs(value - std::round(value)) <= 1e-9 * std::abs(value);
  return fmt::format("{:.{}f}", value, whole ? 0 : 2);
}

std::string percent(double value) {
  return fmt::format("{:+.2f} %", std::abs(value) < 0.005 ? 0 : value);  // no minus zero
}

}  // namespace

TargetResult reproduce(const Target& target, const TargetContext& context) {
  TargetResult result{target.paper, target.table, target.description, target.run(context), {}};
  result.summary = summarize(result.rows, target.mape_bound, target.bounds);
  return result;
}

std::vector<std::string> misses(const TargetResult& result) {
  std::vector<std::string> out;
  for (const TargetRow& row : result.rows)
    if (row.role != Role::predicted && row.role != Role::bound && !row.matches())
      out.push_back(fmt::format("{}: {}: {} is {} instead of {} {}", result.name(), row.row, row.quantity,
                                row.simulated, *row.published, row.unit));
  if (!result.summary.bound_met())
    out.push_back(result.summary.mape ? fmt::format("{}: MAPE of {:.2f} % is beyond the bound of {:.2f} %",
                                                    result.name(), *result.summary.mape, *result.summary.bound)
                                      : result.name() + ": declares a bound but predicts nothing");
  const TargetSummary& s = result.summary;
  if (!s.bounds_met())
    out.push_back(fmt::format("{}: {} of {} bounds kept, at least {:.0f} % promised; {} is {:+.2f} %", result.name(),
                              s.bounds_kept, s.bounds, 100 * s.bound_rule->least_share, s.most_above->row,
                              *s.most_above->error_pct()));
  return out;
}

void write_target_table(std::ostream& out, const TargetResult& result) {
  out << result.name() << ": " << result.description << '\n';
  std::vector<std::vector<std::string>> rows{
      {"row", "quantity", "unit", "published", "simulated", "error", "role", "note"}};
  for (const TargetRow& row : result.rows)
    rows.push_back({row.row, row.quantity, row.unit, row.published ? short_number(*row.published) : "-",
                    short_number(row.simulated), row.published ? percent(*row.error_pct()) : "-", to_string(row.role),
                    row.note});
  out << align_columns(rows);

  const TargetSummary& s = result.summary;
  if (s.exact > 0) out << fmt::format("  exact: {} of {} match\n", s.exact_matched, s.exact);
  if (s.inputs > 0)
    out << fmt::format("  inputs: {} of {} come back as they went in (not counted)\n", s.inputs_matched, s.inputs);
  if (s.fitted_mape)
    out << fmt::format("  fitted: {} cells, which are inputs as well; the fit leaves a MAPE of {:.2f} %\n", s.fitted,
                       *s.fitted_mape);
  if (s.mape) {
    out << fmt::format("  predicted: MAPE {:.2f} % over {}", *s.mape, counted(s.predicted, "cell"));
    out << (s.bound ? fmt::format("; bound {:.2f} %\n", *s.bound) : "; no bound declared\n");
    out << fmt::format("  worst: {}, {}\n", s.worst->row, percent(*s.worst->error_pct()));
  }
  if (s.bounds > 0)
    out << fmt::format("  bounds: {} of {} kept, at least {:.0f} % promised; closest or beyond: {}, {}\n",
                       s.bounds_kept, s.bounds, 100 * s.bound_rule->least_share, s.most_above->row,
                       percent(*s.most_above->error_pct()));
  for (const std::string& miss : misses(result)) out << "  missed: " << miss << '\n';
}

void write_targets_csv_head(std::ostream& out) {
  out << "paper,target,row,quantity,unit,published,simulated,error_pct,role\n";
}

void write_target_csv(std::ostream& out, const TargetResult& result) {
  for (const TargetRow& row : result.rows) {
    const ordered_json object = to_json(result, row);
    std::string line;
    for (const auto& [column, value] : object.items())
      line += (line.empty() ? "" : ",") +
              (value.is_null() ? "" : csv_field(value.is_string() ? value.get<std::string>() : value.dump()));
    out << line << '\n';
  }
}

void write_targets_json(std::ostream& out, const std::vector<TargetResult>& results) {
  ordered_json rows = ordered_json::array();
  for (const TargetResult& result : results)
    for (const TargetRow& row : result.rows) {
      rows.push_back(to_json(result, row));
      rows.back()["note"] = row.note;
    }
  out << rows.dump(2, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace epocast
