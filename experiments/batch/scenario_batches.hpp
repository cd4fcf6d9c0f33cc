#pragma once
// Simulates scenarios in processes that take several in turn, on all processors.

#include <functional>
#include <string>
#include <vector>

#include "experiments/batch/scenario_batch.hpp"
#include "experiments/fork_pool.hpp"

namespace epocast {

/// Who is told what comes of scenarios, in the process that asked for them.
struct BatchSink {
  std::function<void(BatchedScenario&&)> ended;  ///< in the order in which they end; each exactly once
  std::function<void()> after_several = {};      ///< after all that had ended by then
  JobProgress progress = {};                     ///< several times a second; shares of scenarios that are under way
};

/// Equal for scenarios of the same platform and network, which may share a process. `config`: Scenario::config().
std::string network_group(const ConfigNode& config);

/// Simulates the scenarios of `indices`. Those of one of `groups` (by scenario) share a process: they have the same
/// platform and network. One whose process dies is tried again alone; what comes of one that dies alone is a failed
/// result. Throws as run_forked() does.
void run_batches(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices,
                 const std::vector<std::string>& groups, const Registries& registries, const BatchOptions& options,
                 int parallel, const BatchSink& sink);

}  // namespace epocast
