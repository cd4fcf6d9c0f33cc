#pragma once
// Scenarios that are simulated when somebody asks for them, unless a store has them already.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/sweep/sweep.hpp"

namespace epocast {

class StoredScenarios {
 public:
  enum class As {
    run,     ///< rows are listed as a run of the study
    nothing  ///< rows are there for who asks for the same again
  };
  /// The arguments outlive this object. Throws ConfigError.
  StoredScenarios(const std::vector<Scenario>& scenarios, ResultStore& store, const Registries& registries,
                  const SweepOptions& options, As as);

  /// Results of these, in their order. Throws as run_sweep() does; what has come is stored then.
  std::vector<ScenarioResult> results(const std::vector<std::size_t>& indices, const std::function<void()>& progress);
  /// Scenarios of the same group have the same platform and network.
  const std::string& group(std::size_t index) const { return needs_.groups[index]; }
  std::size_t simulated() const { return simulated_; }  ///< so far, by this object

 private:
  const std::vector<Scenario>& scenarios_;
  ResultStore& store_;
  const Registries& registries_;
  SweepOptions options_;
  SweepNeeds needs_;
  std::int64_t run_ = 0;
  std::size_t simulated_ = 0;
};

}  // namespace epocast
