#include "experiments/reproduce/simulate.hpp"

#include "experiments/kept_results.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

std::vector<ScenarioResult> checked(std::vector<ScenarioResult> results) {
  for (const ScenarioResult& result : results) {
    const std::string message = result.scenario + ": " + result.error;
    if (result.exit_code == 2) throw ConfigError(message);
    if (!result.error.empty()) throw SimulationError(message);
  }
  return results;
}

}  // namespace

std::vector<ScenarioResult> simulate(const std::vector<Scenario>& scenarios, const TargetContext& context,
                                     const RunOptions& options) {
  return checked(run_study(scenarios, context.registries, options, context.parallel, context.progress));
}

std::vector<ScenarioResult> simulate_keeping(const std::vector<Scenario>& scenarios, const TargetContext& context) {
  return checked(
      run_study_keeping(scenarios, context.registries, context.parallel, KeptResults(context.keep), context.progress));
}

}  // namespace epocast
