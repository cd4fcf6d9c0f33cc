#pragma once
// Simulates many scenarios of one platform in one process, one after the other.
//
// What they read from files and make of it is remembered, and the engine begins each as it began the first. So its
// result is, digit by digit, that of a process of its own. One that ends the process is tried again alone.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/fork_pool.hpp"
#include "experiments/scenario.hpp"
#include "experiments/store/result_store.hpp"

namespace epocast {

/// What a scenario may take, and what happens to one that takes more: it ends, and its row says so.
struct ScenarioLimits {
  double seconds = 0;  ///< of time on the clock; 0: any
  double bytes = 0;    ///< of address space; 0: any
};

/// What came of a scenario, ready to be stored.
struct SweptScenario {
  std::size_t index = 0;
  std::string columns = {};  ///< JSON object; empty without a result
  std::string currency = {};
  std::string error = {};
  int exit_code = 0;
  Death death = Death::none;
  bool wrong = false;  ///< nothing came of it: to be tried alone, by a process of its own
  double seconds = 0;
  std::string inputs = {};  ///< JSON object: files that were read, and their fingerprints
};

/// For the way from process to process.
std::string pack(const SweptScenario& swept);
SweptScenario unpack_swept(const std::string& text);

/// What comes of a scenario whose process has ended.
SweptScenario after_end(const Scenario& scenario, const Registries& registries, const JobOutcome& outcome,
                        const ScenarioLimits& limits);

/// Simulates the scenarios of `indices` in turn and tells `done` of each; leaves out the last ones if the engine cannot
/// begin again after what it has done. `alone`: with an engine that is made by the scenario. Beyond the limits this
/// process ends with SIGALRM, or has no memory. REQUIRES: this process has no engine and no other threads.
void run_batch(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices, bool alone,
               const Registries& registries, RunOptions options, const ScenarioLimits& limits,
               const std::function<void(const SweptScenario&)>& done);

}  // namespace epocast
