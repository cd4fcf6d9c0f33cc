#pragma once
// Says what a plan found, and why.

#include <iosfwd>
#include <string>

#include "experiments/plan/plan.hpp"

namespace epocast {

/// The ranking, what was ruled out and by what, what the winner owes its place to, the Pareto front. `top`: rows of the
/// ranking.
void write_plan(std::ostream& out, const std::vector<Scenario>& scenarios, const Plan& plan, const PlanOptions& options,
                std::size_t top);

/// A result's objective with its unit: "35700.00 $", "4.2 d".
std::string objective_text(Objective objective, const ScenarioResult& result);

/// A study of one scenario, as YAML.
std::string study_text(const Scenario& scenario);

}  // namespace epocast
