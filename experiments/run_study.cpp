#include "experiments/run_study.hpp"

#include <algorithm>
#include <numeric>

#include "experiments/batch/scenario_batches.hpp"
#include "experiments/batch/scenario_outcome.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

std::string group_of(const Scenario& scenario) {
  try {
    return network_group(scenario.config());
  } catch (const ConfigError&) {  // the scenario's result will say so
    return "";
  }
}

}  // namespace

void run_study(const std::vector<Scenario>& scenarios, const Registries& registries, const RunOptions& options,
               int parallel, const Progress& progress, std::vector<ScenarioResult>& results) {
  results.assign(scenarios.size(), {});
  std::vector<std::size_t> indices(scenarios.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<std::string> groups;
  for (const Scenario& scenario : scenarios) groups.push_back(group_of(scenario));
  StudyProgress state{.of = scenarios.size()};
  BatchSink sink;
  sink.ended = [&](const BatchedScenario& batched) {
    ScenarioResult& result = results[batched.index];
    result = deserialize(batched.result);
    if (result.exit_code == 3) result = post_mortem(scenarios[batched.index], registries, result);
    ++state.done;
    if (!progress) return;
    state.share = static_cast<double>(state.done) / static_cast<double>(state.of);
    state.latest = &result;
    state.index = batched.index;
    progress(state);
    state.latest = nullptr;
  };
  if (progress)
    sink.progress = [&](double running) {
      state.share = (static_cast<double>(state.done) + running) / static_cast<double>(state.of);
      progress(state);
    };
  RunOptions run = options;
  run.advisers = std::max(1, parallel / std::max(1, static_cast<int>(scenarios.size())));  // what scenarios leave free
  run_batches(scenarios, indices, groups, registries, {.run = run, .encode = serialize}, parallel, sink);
}

std::vector<ScenarioResult> run_study(const std::vector<Scenario>& scenarios, const Registries& registries,
                                      const RunOptions& options, int parallel, const Progress& progress) {
  std::vector<ScenarioResult> results;
  run_study(scenarios, registries, options, parallel, progress, results);
  return results;
}

}  // namespace epocast
