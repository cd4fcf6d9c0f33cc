#pragma once
// Runs all scenarios of a study on all processors.

#include <functional>
#include <string>
#include <vector>

#include "experiments/fork_pool.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

/// How far a study is.
struct StudyProgress {
  std::size_t done = 0, of = 0;            ///< scenarios
  double share = 0;                        ///< of all work that is done, 0..1, counting scenarios as equally long
  const ScenarioResult* latest = nullptr;  ///< what has ended just now; null if only time has passed
  std::size_t index = 0;                   ///< of `latest` among the scenarios
};
using Progress = std::function<void(const StudyProgress&)>;

/// Fills `results`, in the order of the scenarios. One that failed has an error text and an exit code; nothing is
/// thrown for it. `progress` is called when a scenario has ended, and several times a second. With several scenarios, a
/// trace file's name gets the scenario's number. Throws Interrupted and ConfigError as run_forked() does; results that
/// `progress` was told of are there then.
void run_study(const std::vector<Scenario>& scenarios, const Registries& registries, const RunOptions& options,
               int parallel, const Progress& progress, std::vector<ScenarioResult>& results);
/// The same, for those who have no use for a part of them.
std::vector<ScenarioResult> run_study(const std::vector<Scenario>& scenarios, const Registries& registries,
                                      const RunOptions& options, int parallel, const Progress& progress);

}  // namespace epocast
