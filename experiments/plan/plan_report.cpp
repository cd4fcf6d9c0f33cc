#include "experiments/plan/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>

#include "experiments/text_table.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

/// Cents, but where they are too coarse.
std::string money(double amount, const std::string& currency) {
  return amount >= 10 ? fmt::format("{:.2f} {}", amount, currency) : fmt::format("{:.4g} {}", amount, currency);
}

std::string percent_of(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

/// A row of the ranking: what people decide by.
std::vector<std::string> row_of(const std::string& head, const ScenarioResult& r, Objective objective) {
  std::vector<std::string> row{head};
  for (const auto& [axis, label] : r.axes) row.push_back(label);
  row.push_back(std::to_string(r.workers));
  row.push_back(to_string(Seconds(r.total_s)));
  row.push_back(objective == Objective::target && r.time_to_target_s ? to_string(Seconds(*r.time_to_target_s)) : "-");
  row.push_back(r.cost ? money(*r.cost, r.currency) : "-");
  row.push_back(r.energy_j ? fmt::format("{:.4g} kWh", *r.energy_j / 3.6e6) : "-");
  row.push_back(objective == Objective::co2 && r.co2_kg ? fmt::format("{:.4g} kg", *r.co2_kg) : "-");
  row.push_back(percent_of(r.mfu));
  row.push_back(r.peak_memory_bytes ? to_string(Bytes(*r.peak_memory_bytes)) + (*r.fits_memory ? "" : " !") : "-");
  return row;
}

void write_rows(std::ostream& out, const Plan& plan, const std::vector<std::size_t>& chosen, Objective objective) {
  std::vector<std::string> head{""};
  for (const auto& [axis, label] : plan.candidates[chosen.front()].result->axes) head.push_back(axis);
  head.insert(head.end(), {"devices", "total", "to target", "cost", "energy", "CO2", "mfu", "memory"});
  std::vector<std::vector<std::string>> rows{head};
  for (std::size_t r = 0; r < chosen.size(); ++r)
    rows.push_back(row_of(std::to_string(r + 1), *plan.candidates[chosen[r]].result, objective));
  // Columns in which nobody has anything say nothing.
  for (std::size_t c = head.size(); c-- > 1;)
    if (std::all_of(rows.begin() + 1, rows.end(), [c](const auto& row) { return row[c] == "-"; }))
      for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  out << align_columns(rows);
}

void write_counts(std::ostream& out, const Plan& plan, const PlanOptions& options) {
  std::map<PlanCandidate::State, std::size_t> counts;
  for (const PlanCandidate& candidate : plan.candidates)
    if (!candidate.result) ++counts[candidate.state];
  const double share = 100.0 * static_cast<double>(plan.tried) / static_cast<double>(plan.candidates.size());
  out << fmt::format("{} of {} simulated ({:.{}f} %)", plan.tried, counted(plan.candidates.size(), "scenario"), share,
                     share < 10 ? 1 : 0);
  const std::pair<PlanCandidate::State, std::string> reasons[] = {
      {PlanCandidate::refused, "cannot be"},
      {PlanCandidate::too_large, "do not fit into memory"},
      {PlanCandidate::too_late, "would take longer than the deadline on an idle network"},
      {PlanCandidate::too_dear, "would cost more than the budget on an idle network"},
      {PlanCandidate::worse, "cannot have less " + objective_names()[static_cast<std::size_t>(options.objective)] +
                                 " than the first on an idle network"}};
  for (const auto& [state, text] : reasons)
    if (counts[state] > 0) out << fmt::format("\n  {} {}", counts[state], text);
  out << '\n';
  std::map<std::string, std::size_t> errors;
  for (const PlanCandidate& candidate : plan.candidates)
    if (candidate.state == PlanCandidate::refused) ++errors[candidate.error];
  for (const auto& [error, times] : errors)
    out << "  cannot be: " << error << (times > 1 ? fmt::format("  [{} scenarios]", times) : "") << '\n';
}

/// What the ranking leaves open where not everything was simulated.
void write_scope(std::ostream& out, const Plan& plan) {
  const auto bounded = std::ranges::count(plan.candidates, PlanCandidate::worse, &PlanCandidate::state);
  if (bounded > 0)
    out << fmt::format("of the {} simulated, best first; {} only bounded: none beats the first, some may come next\n",
                       plan.tried, bounded == 1 ? "1 other was" : fmt::format("{} others were", bounded));
}

/// For each axis: the best that chooses otherwise, or what it would take at least.
void write_reasons(std::ostream& out, const std::vector<Scenario>& scenarios, const Plan& plan,
                   const PlanOptions& options) {
  const std::size_t winner = plan.ranking.front();
  const double value = *objective_value(options.objective, *plan.candidates[winner].result);
  out << "\nwhy: limited by " << plan.candidates[winner].result->limited_by << '\n';
  std::vector<std::vector<std::string>> rows{{"instead of", "the best with", "takes", "that is"}};
  for (std::size_t a = 0; a < scenarios[winner].axes.size(); ++a) {
    const std::string &axis = scenarios[winner].axes[a].first, &label = scenarios[winner].axes[a].second;
    const std::string mine = axis + "=" + label;
    const std::optional<OtherChoice> other = best_other_choice(scenarios, plan, options.objective, a);
    if (!other) {
      rows.push_back({mine, "another value", "does not meet the conditions", "-"});
      continue;
    }
    const PlanCandidate& candidate = plan.candidates[other->index];
    const double takes = other->known ? *objective_value(options.objective, *candidate.result) : candidate.bound;
    rows.push_back({mine, other->known ? scenarios[other->index].axes[a].second : "another value",
                    (other->known ? "" : "at least ") +
                        objective_text(options.objective, other->known ? *candidate.result : candidate.least),
                    value == 0 ? "-" : fmt::format("{:+.1f} %", 100 * (takes / value - 1))});
  }
  if (rows.size() > 1) out << align_columns(rows);
}

void write_front(std::ostream& out, const Plan& plan, const PlanOptions& options) {
  const std::size_t unknown = possibly_on_front(plan);
  out << "\nPareto front: what nothing else beats in time, devices, cost and energy at once";
  if (unknown > 0)
    out << fmt::format(", of those simulated; {} could be on it ({})", counted(unknown, "other"),
                       options.whole_front ? "as far as is known" : "--front simulates them");
  out << '\n';
  write_rows(out, plan, pareto_front(plan), options.objective);
}

}  // namespace

std::string objective_text(Objective objective, const ScenarioResult& r) {
  const double value = objective_value(objective, r).value_or(0);
  switch (objective) {
    case Objective::cost: return money(value, r.currency);
    case Objective::time: return to_string(Seconds(value));
    case Objective::target: return to_string(Seconds(value)) + " to the target";
    case Objective::energy: return fmt::format("{:.4g} kWh", value / 3.6e6);
    case Objective::co2: return fmt::format("{:.4g} kg of CO2", value);
  }
  return "";
}

void write_plan(std::ostream& out, const std::vector<Scenario>& scenarios, const Plan& plan, const PlanOptions& options,
                std::size_t top) {
  const std::string& study = scenarios.front().study;
  if (plan.ranking.empty()) {
    out << study << ": nothing meets the conditions";
    if (plan.closest) {
      const ScenarioResult& r = *plan.candidates[*plan.closest].result;
      out << fmt::format("; the fastest that fits takes {}{}:\n", to_string(Seconds(r.total_s)),
                         r.cost ? " and costs " + money(*r.cost, r.currency) : "");
      write_rows(out, plan, {*plan.closest}, options.objective);
    } else {
      out << '\n';
    }
    return write_counts(out, plan, options);
  }
  const ScenarioResult& winner = *plan.candidates[plan.ranking.front()].result;
  out << study << ": " << objective_text(options.objective, winner);
  if (options.objective != Objective::time) out << " in " << to_string(Seconds(winner.total_s));
  out << '\n';
  write_scope(out, plan);
  std::vector<std::size_t> shown = plan.ranking;
  shown.resize(std::min(shown.size(), top));
  write_rows(out, plan, shown, options.objective);
  out << '\n';
  write_counts(out, plan, options);
  write_reasons(out, scenarios, plan, options);
  write_front(out, plan, options);
  for (const std::string& warning : winner.warnings) out << "\nwarning: " << warning << '\n';
}

std::string study_text(const Scenario& scenario) {
  const ConfigNode config = scenario.config();
  std::string text = "# " + (scenario.name.empty() ? scenario.study : scenario.name) + '\n';
  for (const std::string& key : config.keys()) text += key + ": " + config.at(key).flow_text() + '\n';
  return text;
}

}  // namespace epocast
