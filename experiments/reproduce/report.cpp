#include "experiments/reproduce/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "experiments/output.hpp"
#include "experiments/text_table.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

using nlohmann::ordered_json;

ordered_json number(std::optional<double> value) { return value ? ordered_json(*value) : ordered_json(nullptr); }

/// Whole numbers, or what differs from one by rounding, as they are; others with two digits after the point, or, where
/// those would hold next to nothing, such as of learning rates, with three digits in all.
std::string short_number(double value) {
  const bool whole = std::abs(value - std::round(value)) <= 1e-9 * std::abs(value);
  if (!whole && std::abs(value) < 0.1 && std::abs(value) > 1e-9) return fmt::format("{:.3g}", value);
  return fmt::format("{:.{}f}", value, whole ? 0 : 2);
}

std::string percent(double value) {
  return fmt::format("{:+.2f} %", std::abs(value) < 0.005 ? 0 : value);  // no minus zero
}

/// What the mean error over such cells is, and what rules without a simulator reach.
std::string describe(const PredictionErrors& errors, const std::string& trivial_rule) {
  if (errors.cells == 0) return "none";
  std::string text = fmt::format("MAPE {:.2f} % over {}", errors.mape, counted(errors.cells, "cell"));
  if (errors.trivial_mape) text += fmt::format("; {}: {:.2f} %", trivial_rule, *errors.trivial_mape);
  if (errors.constant_mape) text += fmt::format("; the best constant: {:.2f} %", *errors.constant_mape);
  return text;
}

/// Medians and 90th percentiles of a group of predictions, as cells of a table.
std::vector<std::string> quantile_cells(const std::string& kind, const std::string& name, const ErrorQuantiles& q) {
  const auto cell = [](std::optional<double> value) { return value ? fmt::format("{:.2f} %", *value) : "-"; };
  return {kind,
          name,
          std::to_string(q.cells),
          cell(q.median),
          cell(q.ninetieth),
          cell(q.trivial_median),
          cell(q.trivial_ninetieth)};
}

/// Errors by group, if the rows have groups.
std::string group_table(const std::vector<TargetRow>& rows, const std::string& trivial_rule) {
  std::vector<std::pair<std::string, std::string>> groups;
  for (const TargetRow& row : rows)
    for (const auto& group : row.groups)
      if (row.role == Role::predicted && std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  if (groups.empty()) return "";
  std::ranges::stable_sort(groups, {}, &std::pair<std::string, std::string>::first);
  std::vector<std::vector<std::string>> table{
      {"errors by", "", "runs", "median", "90th", trivial_rule + ": median", "90th"}};
  for (const auto& [kind, name] : groups) {
    std::vector<TargetRow> members;
    for (const TargetRow& row : rows)
      if (std::ranges::find(row.groups, std::pair(kind, name)) != row.groups.end()) members.push_back(row);
    table.push_back(quantile_cells(kind, name, error_quantiles(members)));
  }
  table.push_back(quantile_cells("all", "", error_quantiles(rows)));
  return align_columns(table);
}

/// How many predicted rows' published numbers lie in the intervals of theirs, if these have some.
std::string coverage(const std::vector<TargetRow>& rows) {
  int have = 0, inside = 0;
  for (const TargetRow& row : rows) {
    if (row.role != Role::predicted || !row.published || !row.low || !row.high) continue;
    ++have;
    inside += *row.low <= *row.published && *row.published <= *row.high ? 1 : 0;
  }
  if (have == 0) return "";
  return fmt::format("  inside of their 90 % intervals: {} of {} ({:.0f} %)\n", inside, have, 100.0 * inside / have);
}

/// How often the forecast knows the faster of two, if the target asks.
std::string describe(const std::vector<WinnerPair>& pairs, const WinnerRule& rule) {
  const auto right = std::ranges::count_if(pairs, &WinnerPair::is_right);
  return fmt::format("  winners: {} of {} right, of pairs with equal {} that differ by more than {:g} %\n", right,
                     pairs.size(), fmt::join(rule.equal, ", "), rule.gap);
}

/// A miss, known if it is declared and `extent` [percent] no more than declared.
Miss miss(const std::vector<KnownMiss>& known, const std::string& what, double extent, std::string text) {
  const auto declared = std::ranges::find(known, what, &KnownMiss::what);
  if (declared == known.end()) return {std::move(text)};
  if (!(std::abs(extent) <= declared->at_most))
    return {fmt::format("{}: worse than the {:.2f} % that are known", text, declared->at_most)};
  return {std::move(text), declared->why};
}

/// What errors of predictions were to be, and are. REQUIRES: there are some.
std::string bounds_text(const TargetSummary& summary) {
  std::string out;
  const auto add = [&](const char* what, double bound, double reached) {
    out += fmt::format("  bound: {} of at most {:.2f} %, is {:.2f} %\n", what, bound, reached);
  };
  if (summary.bound) add(kMape, *summary.bound, *summary.mape);
  for (const QuantileBound& one : quantile_bounds(summary))
    if (one.reached) add(one.what, one.bound, *one.reached);
  return out.empty() ? "  no bound declared\n" : out;
}

}  // namespace

ordered_json columns_of(const TargetResult& result, const TargetRow& row) {
  return {{"paper", result.paper},
          {"target", result.table},
          {"row", row.row},
          {"quantity", row.quantity},
          {"unit", row.unit},
          {"published", number(row.published)},
          {"simulated", row.simulated},
          {"error_pct", number(row.error_pct())},
          {"role", to_string(row.role)},
          {"seen", row.role == Role::predicted ? ordered_json(row.seen) : ordered_json(nullptr)},
          {"trivial", number(row.trivial)},
          {"trivial_error_pct", number(row.trivial_error_pct())},
          {"low", number(row.low)},
          {"high", number(row.high)}};
}

bool TargetResult::as_declared() const {
  return std::ranges::all_of(misses, [](const Miss& m) { return !m.known.empty(); });
}

TargetResult reproduce(const Target& target, const TargetContext& context) {
  TargetResult result{target.paper, target.table, target.description, target.run(context), {}, target.trivial_rule};
  result.summary = summarize(result.rows, target.mape_bound, target.bounds);
  result.winners = target.winners;
  if (target.winners) result.pairs = winner_pairs(result.rows, target.winners->gap, target.winners->less_is_better);
  result.misses = find_misses(result.rows, result.summary, result.pairs, target.known_misses);
  return result;
}

std::vector<Miss> find_misses(const std::vector<TargetRow>& rows, const TargetSummary& summary,
                              const std::vector<WinnerPair>& pairs, const std::vector<KnownMiss>& known) {
  std::vector<Miss> out;
  std::set<std::string> missed;
  for (const TargetRow& row : rows) {
    if (row.role == Role::predicted || row.matches()) continue;
    missed.insert(row.name());
    const double error = *row.error_pct();
    out.push_back(miss(known, row.name(), error,
                       fmt::format("{} is {:.10g} instead of {}{:.10g} {} ({:+.2f} %)", row.name(), row.simulated,
                                   row.role == Role::bound ? "at most " : "", *row.published, row.unit, error)));
  }
  if (!summary.bound_met()) {
    missed.insert(kMape);
    out.push_back(summary.mape ? miss(known, kMape, *summary.mape,
                                      fmt::format("MAPE of {:.2f} % is beyond the bound of {:.2f} %", *summary.mape,
                                                  *summary.bound))
                               : Miss{"declares a bound but predicts nothing"});
  }
  for (const QuantileBound& bound : quantile_bounds(summary)) {
    if (bound.met()) continue;
    missed.insert(bound.what);
    out.push_back(bound.reached ? miss(known, bound.what, *bound.reached,
                                       fmt::format("{} of {:.2f} % is beyond the bound of {:.2f} %", bound.what,
                                                   *bound.reached, bound.bound))
                                : Miss{fmt::format("declares a bound on the {} but predicts nothing", bound.what)});
  }
  for (const WinnerPair& pair : pairs) {
    if (pair.is_right()) continue;
    missed.insert(pair.name());
    out.push_back(miss(known, pair.name(), pair.published_gap,
                       fmt::format("{}: {:+.1f} % measured, {:+.1f} % forecast", pair.name(), pair.published_gap,
                                   pair.simulated_gap)));
  }
  for (const KnownMiss& declared : known)
    if (!missed.contains(declared.what) && !declared.of_this_machine)
      out.push_back({declared.what + " is declared as missed, but is met; remove the declaration"});
  return out;
}

std::string describe(const Miss& miss) {
  return miss.known.empty() ? "missed: " + miss.text : "known miss: " + miss.text + ": " + miss.known;
}

const std::vector<std::string>& TargetWriter::formats() {
  static const std::vector<std::string> all{"table", "csv", "json"};
  return all;
}

TargetWriter::TargetWriter(std::ostream& out, const std::string& format) : out_(out), format_(format) {
  if (format_ == "csv")
    out_
        << "paper,target,row,quantity,unit,published,simulated,error_pct,role,seen,trivial,trivial_error_pct,low,high\n"
        << std::flush;
  if (format_ == "json") out_ << "[";
}

TargetWriter::~TargetWriter() {
  if (format_ == "json") out_ << "\n]\n" << std::flush;
}

void TargetWriter::write(const TargetResult& result) {
  if (format_ == "csv")
    write_csv(result);
  else if (format_ == "json")
    write_json(result);
  else
    write_table(result);
  out_ << std::flush;
  first_ = false;
}

void TargetWriter::write_table(const TargetResult& result) {
  if (!first_) out_ << '\n';
  out_ << result.name() << ": " << result.description << '\n';
  const bool trivial = std::ranges::any_of(result.rows, [](const TargetRow& row) { return row.trivial.has_value(); });
  const auto percents = [](std::optional<double> value) { return value ? percent(*value) : "-"; };
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::vector<std::string> row, std::string trivial_error, std::string role, std::string note) {
    if (trivial) row.push_back(std::move(trivial_error));
    row.push_back(std::move(role));
    row.push_back(std::move(note));
    rows.push_back(std::move(row));
  };
  add({"row", "quantity", "unit", "published", "simulated", "error"}, "trivial", "role", "note");
  for (const TargetRow& row : result.rows)
    add({row.row, row.quantity, row.unit, row.published ? short_number(*row.published) : "-",
         short_number(row.simulated), percents(row.error_pct())},
        percents(row.trivial_error_pct()), std::string(to_string(row.role)) + (row.seen ? ", seen" : ""), row.note);
  out_ << align_columns(rows);

  const TargetSummary& s = result.summary;
  if (s.exact > 0) out_ << fmt::format("  exact: {} of {} match\n", s.exact_matched, s.exact);
  if (s.stated > 0) out_ << fmt::format("  stated: {} of {} hold\n", s.stated_matched, s.stated);
  if (s.inputs > 0)
    out_ << fmt::format("  inputs: {} of {} come back as they went in (not counted)\n", s.inputs_matched, s.inputs);
  if (s.fitted_mape)
    out_ << fmt::format("  fitted: {} cells, which are inputs as well; the fit leaves a MAPE of {:.2f} %\n", s.fitted,
                        *s.fitted_mape);
  if (s.mape) {
    out_ << "  predicted blind: " << describe(s.blind, result.trivial_rule) << '\n';
    out_ << "  predicted, seen: " << describe(s.seen, result.trivial_rule) << '\n';
    out_ << bounds_text(s);
    out_ << fmt::format("  worst: {}, {}\n", s.worst->row, percent(*s.worst->error_pct()));
    out_ << group_table(result.rows, result.trivial_rule);
    out_ << coverage(result.rows);
    if (result.winners) out_ << describe(result.pairs, *result.winners);
  }
  if (s.bounds > 0)
    out_ << fmt::format("  bounds: {} of {} kept; closest or beyond: {}, {}\n", s.bounds_kept, s.bounds,
                        s.most_above->row, percent(*s.most_above->error_pct()));
  for (const Miss& m : result.misses) out_ << "  " << describe(m) << '\n';
}

void TargetWriter::write_csv(const TargetResult& result) {
  for (const TargetRow& row : result.rows) {
    const ordered_json object = columns_of(result, row);
    std::string line;
    for (const auto& [column, value] : object.items())
      line += (line.empty() ? "" : ",") +
              (value.is_null() ? "" : csv_field(value.is_string() ? value.get<std::string>() : value.dump()));
    out_ << line << '\n';
  }
}

void TargetWriter::write_json(const TargetResult& result) {
  bool first = first_;
  for (const TargetRow& row : result.rows) {
    ordered_json object = columns_of(result, row);
    object["note"] = row.note;
    out_ << (first ? "\n" : ",\n") << object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    first = false;
  }
}

}  // namespace epocast
