#pragma once
// Simulates many scenarios of one platform in one process, each in a child that cannot harm the others.
//
// The process reads the platform, loads it into SimGrid and remembers what it has read; a child per scenario has all
// that from the start and its clock still at zero. So its result is, digit by digit, that of a process of its own.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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
  bool wrong = false;  ///< nothing came of it: to be tried alone, with an engine of its own
  double seconds = 0;
  std::string inputs = {};  ///< JSON object: files that were read, and their fingerprints
};

/// For the way from process to process.
std::string pack(const SweptScenario& swept);
SweptScenario unpack_swept(const std::string& text);

/// Simulates the scenarios of `indices` in turn and tells `done` of each. `alone`: nothing is prepared here that might
/// end this process. REQUIRES: this process has no engine and no other threads.
void run_batch(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices, bool alone,
               const Registries& registries, const RunOptions& options, const ScenarioLimits& limits,
               const std::function<void(const SweptScenario&)>& done);

}  // namespace epocast
