#include "experiments/reproduce/simulate.hpp"

#include "sim/error.hpp"

namespace epocast {

std::vector<ScenarioResult> simulate(const std::vector<Scenario>& scenarios, const TargetContext& context,
                                     const RunOptions& options) {
  std::vector<ScenarioResult> results =
      run_study(scenarios, context.registries, options, context.parallel, context.progress);
  for (const ScenarioResult& result : results) {
    const std::string message = result.scenario + ": " + result.error;
    if (result.exit_code == 2) throw ConfigError(message);
    if (!result.error.empty()) throw SimulationError(message);
  }
  return results;
}

}  // namespace epocast
