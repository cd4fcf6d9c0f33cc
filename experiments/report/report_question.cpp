#include "experiments/report/report_question.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/report_columns.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

std::optional<double> number_in(const ReportRow& row, const std::string& column) {
  const nlohmann::ordered_json& value = report_value(row, column);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

bool has_any(const ReportData& data, const std::string& column) {
  return std::ranges::any_of(data.rows, [&](const ReportRow& row) { return number_in(row, column).has_value(); });
}

}  // namespace

std::string objective_column(Objective objective) {
  switch (objective) {
    case Objective::cost: return "cost";
    case Objective::time: return "total_s";
    case Objective::energy: return "energy_j";
    case Objective::co2: return "co2_kg";
    case Objective::target: return "time_to_target_s";
  }
  return "";
}

Objective chosen_objective(const ReportData& data, const ReportQuestion& question) {
  if (data.costs_apart && (question.budget || question.objective == Objective::cost))
    throw ConfigError(
        fmt::format("{}: costs of several files cannot be compared, as {} {} not say in which currency; "
                    "give stores of `sweep`, which do, or one file",
                    question.budget ? "--budget" : "--minimise cost", fmt::join(data.no_currency, " and "),
                    data.no_currency.size() == 1 ? "does" : "do"));
  if (question.budget && !has_any(data, "cost"))
    throw ConfigError("--budget: no result has column 'cost'; give the studies a price block, or leave it out");
  if (!question.objective) return has_any(data, "cost") ? Objective::cost : Objective::time;
  const std::string column = objective_column(*question.objective);
  if (!has_any(data, column))
    throw ConfigError("--minimise " + objective_names()[static_cast<std::size_t>(*question.objective)] +
                      ": no result has column '" + column +
                      "'; give the studies a price or power block, or minimise time");
  return *question.objective;
}

std::vector<const ReportRow*> report_ranking(const ReportData& data, const ReportQuestion& question) {
  const std::string column = objective_column(chosen_objective(data, question));
  const auto at_most = [](const ReportRow& row, const std::string& name, const std::optional<double>& limit) {
    const std::optional<double> value = number_in(row, name);
    return !limit || (value && *value <= *limit);
  };
  std::vector<const ReportRow*> ranked;
  for (const ReportRow& row : data.rows)
    if (row.error.empty() && number_in(row, column) && at_most(row, "total_s", question.deadline) &&
        at_most(row, "cost", question.budget) && !(question.fits && report_value(row, "fits_memory") == false))
      ranked.push_back(&row);
  std::ranges::stable_sort(ranked, {}, [&](const ReportRow* row) { return *number_in(*row, column); });
  return ranked;
}

}  // namespace epocast
