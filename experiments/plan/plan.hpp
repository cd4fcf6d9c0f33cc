#pragma once
// Finds the best scenario of a study without simulating most of them.
//
// Best first: every scenario is compiled, which tells whether it fits into memory and what it takes at least; then they
// are simulated in the order of what their objective is at least, until that is more than the best found. So the answer
// is the one that simulating all of them would give.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario.hpp"

namespace epocast {

enum class Objective { cost, time, energy, co2, target };
/// "cost", "time", "energy", "co2".
std::vector<std::string> objective_names();
/// The value of a result; nothing if it has none.
std::optional<double> objective_value(Objective objective, const ScenarioResult& result);

struct PlanOptions {
  Objective objective = Objective::cost;
  std::optional<double> deadline = {};  ///< total_s at most
  std::optional<double> budget = {};    ///< cost at most
  bool fits = true;                     ///< only what fits into memory
  bool exhaustive = false;              ///< simulate all that could meet the conditions
  int parallel = 1;
};

/// A scenario of the search.
struct PlanCandidate {
  std::size_t index = 0;  ///< of the scenario
  enum State { refused, too_large, too_late, too_dear, worse, simulated } state = worse;
  std::string error = {};                     ///< why it was refused, or could not be simulated
  double bound = 0;                           ///< of the objective
  double least_s = 0;                         ///< of total_s
  std::optional<ScenarioResult> result = {};  ///< if simulated
  bool meets = false;                         ///< all conditions
};

struct Plan {
  std::vector<PlanCandidate> candidates;  ///< in the order of the scenarios
  std::vector<std::size_t> ranking;       ///< of those that meet the conditions, best first
  std::optional<std::size_t> closest;     ///< where none does: the one that comes closest
  std::size_t simulated = 0;
};

/// Throws ConfigError where the objective has no values, such as costs without a price.
Plan make_plan(const std::vector<Scenario>& scenarios, const Registries& registries, const PlanOptions& options,
               const std::function<void(const std::string&)>& progress);

/// Of those that meet the conditions, the ones that no other beats in both time and objective; in order of time.
std::vector<std::size_t> pareto_front(const Plan& plan, Objective objective);

}  // namespace epocast
