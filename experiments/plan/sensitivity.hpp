#pragma once
// What would change the decision of a plan.
//
// The first and those that come closest to it are simulated again with inputs changed: those that may be off in any
// study (how fast devices and links of each platform are, prices, power, how much there is to train) by a tenth, and
// calibrations by what they state themselves: ranges of a software stack's constants, and the errors of fits.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/plan/plan.hpp"

namespace epocast {

/// An input that is off.
struct ChangedInput {
  std::string input;                      ///< "devices of p4d", "spread of stack pytorch_ddp"
  std::string change;                     ///< "-10 %", "0.06"
  std::optional<double> value = {};       ///< of the plan's first, if it still meets the conditions
  std::optional<std::size_t> best = {};   ///< which scenario is best then; none: nothing meets the conditions
  std::optional<double> best_value = {};  ///< of that one
};

struct Sensitivity {
  std::vector<std::size_t> rivals;  ///< scenarios that were compared, the plan's first before the others
  std::vector<ChangedInput> inputs;
  std::vector<std::string> unknown;  ///< what could not be changed, and why

  /// Whether the plan's first stays the best whatever is changed.
  bool survives() const;
};

/// REQUIRES: !plan.ranking.empty(). What is simulated goes to `store`, as rows of no run.
Sensitivity sensitivity(const std::vector<Scenario>& scenarios, const Plan& plan, const PlanOptions& options,
                        StoredScenarios& stored, ResultStore& store, const Registries& registries,
                        const SweepOptions& sweep, const std::function<void(const std::string&)>& progress);

/// A table of them; what changes the decision is marked.
std::string sensitivity_text(const std::vector<Scenario>& scenarios, const Sensitivity& found, Objective objective,
                             const std::string& currency);

}  // namespace epocast
