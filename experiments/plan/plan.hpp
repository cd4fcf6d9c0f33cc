#pragma once
// Finds the best scenario of a study without simulating most of them.
//
// Best first: every scenario is compiled, which tells whether it fits into memory and what it takes at least; then they
// are simulated in the order of what their objective is at least, until that is more than the best found. So the answer
// is the one that simulating all of them would give. What was simulated is in a store, and need not be again.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario.hpp"
#include "experiments/sweep/stored_scenarios.hpp"

namespace epocast {

enum class Objective { cost, time, energy, co2, target };
/// "cost", "time", "energy", "co2", "target".
std::vector<std::string> objective_names();
/// The value of a result; nothing if it has none.
std::optional<double> objective_value(Objective objective, const ScenarioResult& result);

struct PlanOptions {
  Objective objective = Objective::cost;
  std::optional<double> deadline = {};  ///< total_s at most
  std::optional<double> budget = {};    ///< cost at most
  bool fits = true;                     ///< only what fits into memory
  bool exhaustive = false;              ///< simulate all that could meet the conditions
  bool whole_front = false;             ///< simulate all that could be on the Pareto front
  bool alternatives = false;            ///< simulate what tells the best with another choice on each axis
  int parallel = 1;

  /// Whether a result meets all conditions.
  bool met_by(const ScenarioResult& result) const;
};

/// A scenario of the search.
struct PlanCandidate {
  std::size_t index = 0;  ///< of the scenario
  enum State { refused, too_large, too_late, too_dear, worse, simulated } state = worse;
  std::string error = {};                     ///< why it was refused, or could not be simulated
  double bound = 0;                           ///< of the objective
  ScenarioResult least = {};                  ///< see CheapBounds
  std::optional<ScenarioResult> result = {};  ///< if simulated, now or before
  bool meets = false;                         ///< all conditions
};

struct Plan {
  std::vector<PlanCandidate> candidates;  ///< in the order of the scenarios
  std::vector<std::size_t> ranking;       ///< of those that meet the conditions, best first
  std::optional<std::size_t> closest;     ///< where none does: the one that comes closest
  std::size_t tried = 0;                  ///< that the answer needed the results of
};

/// Throws ConfigError where the objective has no values, such as costs without a price.
Plan make_plan(const std::vector<Scenario>& scenarios, const Registries& registries, const PlanOptions& options,
               StoredScenarios& stored, const std::function<void(const std::string&)>& progress);

/// The best scenario that chooses otherwise on an axis than the plan's first.
struct OtherChoice {
  std::size_t index = 0;
  bool known = false;  ///< it was simulated, and no other can be better; else its bound is what the best takes at least
};
/// REQUIRES: !plan.ranking.empty(). Nothing if none with another choice meets the conditions.
std::optional<OtherChoice> best_other_choice(const std::vector<Scenario>& scenarios, const Plan& plan,
                                             Objective objective, std::size_t axis);

/// What a front weighs, as far as all of the plan's results have it: total_s, cost, workers, energy_j.
std::vector<double> front_criteria(const ScenarioResult& result);
/// Of those that meet the conditions, the ones that no other beats in one of these and equals in the rest; in order of
/// time.
std::vector<std::size_t> pareto_front(const Plan& plan);
/// How many that were not simulated could be on the front, as far as bounds tell.
std::size_t possibly_on_front(const Plan& plan);

}  // namespace epocast
