// Fuzz target: any bytes either are a study whose first scenarios can be read, or throw ConfigError. Nothing is
// simulated. Links with clang's -fsanitize=fuzzer or with driver.cpp; seeds are in seeds/study.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "experiments/scenario.hpp"
#include "sim/error.hpp"
#include "tests/fuzz/property.hpp"

using namespace epocast;
using fuzz::require;

namespace {

void check_scenario(const Scenario& scenario, const Study& study) {
  static const Registries registries = builtin_registries();
  require(scenario.axes.size() == study.axes.size(), "a scenario has all axes");
  const ScenarioSetup setup = read_scenario(scenario, registries);
  require(setup.strategy != nullptr && !setup.phases.empty(), "a scenario has a strategy and phases");
  const auto& slowdown = setup.irregularity.slowdown;
  require(slowdown.empty() || slowdown.size() == setup.cluster.devices.size(), "slowdowns are by device");
  for (const PhaseSettings& phase : setup.phases) {
    require(!phase.workers.empty() && phase.workers.size() <= setup.cluster.devices.size(), "workers are devices");
    require(phase.global_batch > 0, "there is a batch");
    const auto divisor = setup.strategy->batch_divisor(static_cast<std::int64_t>(phase.workers.size()));
    require(phase.shares.empty() ? phase.global_batch % divisor == 0 : phase.shares.size() == phase.workers.size(),
            "the batch is shared out evenly, or each worker has a share of its own");
    require(phase.epochs > 0 && phase.iterations >= phase.epochs, "an epoch has iterations, and no count overflows");
  }
}

void check_message(const ConfigError& error) {
  const std::string_view message = error.what();
  require(!message.empty(), "errors say something");
  require(message.find('\n') == std::string_view::npos, "a message is one line");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostScenarios = 3;
  try {
    const Study study = parse_study({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
    require(!study.scenarios.empty(), "a study has a scenario");
    for (std::size_t i = 0; i < std::min(kMostScenarios, study.scenarios.size()); ++i) {
      try {
        check_scenario(study.scenarios[i], study);
      } catch (const ConfigError& error) {
        check_message(error);
      }
    }
  } catch (const ConfigError& error) {
    check_message(error);
  }
  return 0;
}
