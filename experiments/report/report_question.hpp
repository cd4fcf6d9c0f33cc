#pragma once
// The question that a report answers: the least of what, under which conditions.

#include <optional>
#include <vector>

#include "experiments/plan/plan.hpp"
#include "experiments/report/report_data.hpp"

namespace epocast {

struct ReportQuestion {
  std::optional<Objective> objective = {};  ///< nothing: cost if there are costs, else time
  std::optional<double> deadline = {};      ///< total_s at most
  std::optional<double> budget = {};        ///< cost at most
  bool fits = true;                         ///< only what fits into memory
};

/// The column of an objective: "cost", "total_s", "energy_j", "co2_kg".
std::string objective_column(Objective objective);

/// The question's objective, or what it is if the question has none. Throws ConfigError if no row has values of it, or
/// costs to keep within a budget.
Objective chosen_objective(const ReportData& data, const ReportQuestion& question);

/// Rows that meet the conditions, best first.
std::vector<const ReportRow*> report_ranking(const ReportData& data, const ReportQuestion& question);

}  // namespace epocast
