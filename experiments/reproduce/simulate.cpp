#include "experiments/reproduce/simulate.hpp"

#include <numeric>
#include <utility>

#include "experiments/batch/scenario_batch.hpp"
#include "experiments/kept_results.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

// What the text from a process begins with.
constexpr char kReturned = '=', kWrongInput = '?', kFailed = '!';

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

std::string in_one_process(const TargetContext& context, const std::function<std::string(const SimulateHere&)>& job) {
  const auto child = [&](int) -> std::string {
    BatchProcess process(context.registries, {.encode = serialize});
    const SimulateHere simulate_here = [&](const std::vector<Scenario>& scenarios) {
      std::vector<ScenarioResult> results(scenarios.size());
      std::vector<std::size_t> indices(scenarios.size());
      std::iota(indices.begin(), indices.end(), 0);
      std::size_t simulated = 0;
      process.run(scenarios, indices, false, [&](const BatchedScenario& batched) {
        if (batched.wrong) return;
        ++simulated;
        results[batched.index] = deserialize(batched.result);
      });
      if (simulated < scenarios.size()) throw SimulationError("the engine cannot simulate these scenarios in turn");
      return checked(std::move(results));
    };
    try {
      return kReturned + job(simulate_here);
    } catch (const ConfigError& error) {
      return kWrongInput + std::string(error.what());
    } catch (const std::exception& error) {
      return kFailed + std::string(error.what());
    }
  };
  std::string returned;
  run_forked(1, 1, child, [&](int, const JobOutcome& outcome) {
    if (!outcome.finished) throw SimulationError("the process of a fit has ended early: " + outcome.errors);
    returned = outcome.output;
  });
  const std::string text = returned.substr(1);
  if (returned.front() == kWrongInput) throw ConfigError(text);
  if (returned.front() == kFailed) throw SimulationError(text);
  return text;
}

std::vector<ScenarioResult> simulate_keeping(const std::vector<Scenario>& scenarios, const TargetContext& context) {
  return checked(
      run_study_keeping(scenarios, context.registries, context.parallel, KeptResults(context.keep), context.progress));
}

}  // namespace epocast
