#pragma once
// Simulates many scenarios of one platform in one process, one after the other.
//
// What they read from files and make of it is remembered, and the engine begins each as it began the first. So its
// result is, digit by digit, that of a process of its own. One that ends the process is tried again alone.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/scenario.hpp"

namespace epocast {

/// What a scenario may take, and what happens to one that takes more: it ends, and its row says so.
struct ScenarioLimits {
  double seconds = 0;  ///< of time on the clock; 0: any
  double bytes = 0;    ///< of address space; 0: any
};

/// How scenarios are simulated, and what is kept of their results.
struct BatchOptions {
  RunOptions run = {};  ///< with several scenarios, a trace file's name gets the scenario's number
  ScenarioLimits limits = {};
  /// What of a result travels from process to process.
  std::function<std::string(const ScenarioResult&)> encode;
  bool record_inputs = false;  ///< fill BatchedScenario::inputs
};

/// What came of a scenario.
struct BatchedScenario {
  std::size_t index = 0;
  std::string result = {};  ///< encoded
  int exit_code = 0;
  bool killed = false;  ///< its process was: by somebody, or for its memory
  bool wrong = false;   ///< nothing came of it: to be tried alone, by a process of its own
  double seconds = 0;
  bool with_simgrid = false;  ///< its process has loaded SimGrid
  std::string inputs = "{}";  ///< JSON object: files that were read, and their fingerprints
};

/// For the way from process to process.
std::string pack(const BatchedScenario& batched);
BatchedScenario unpack_batched(const std::string& text);

/// A text with its length, and the way back.
void put_text(std::string& out, std::string_view text);
std::string_view take_text(std::string_view& text);

/// The process of one or more batches. REQUIRES: this process has no engine and no other threads; one of these only.
class BatchProcess {
 public:
  /// `registries` outlive this. Beyond the limits this process ends with SIGALRM, or has no memory.
  BatchProcess(const Registries& registries, BatchOptions options);
  ~BatchProcess();
  BatchProcess(const BatchProcess&) = delete;
  BatchProcess& operator=(const BatchProcess&) = delete;

  /// Simulates the scenarios of `indices`, of one platform and network, in turn and tells `done` of each; leaves out
  /// the last ones if the engine cannot begin again after what it has done. `alone`: with an engine that is made by the
  /// scenario.
  void run(const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& indices, bool alone,
           const std::function<void(const BatchedScenario&)>& done);

 private:
  BatchedScenario simulate(const Scenario& scenario, const RunOptions& run) const;

  const Registries& registries_;
  BatchOptions options_;  ///< and the engine, once there is one
  std::unique_ptr<SimEngine> engine_;
};

}  // namespace epocast
