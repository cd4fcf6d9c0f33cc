#pragma once
// `epocast calibrate steps`.

#include <string>
#include <vector>

#include "experiments/scenario.hpp"

namespace epocast {

struct CalibrateStepsArguments {
  std::string study;
  std::vector<std::string> files;
  std::vector<std::string> constants;  ///< study keys to fit; empty: what the measurements may tell
  int jobs = 0;                        ///< simulations at a time; 0: one per processor
  std::string output, plot, store;
};

/// Returns the exit code. Throws ConfigError and SimulationError.
int calibrate_steps(const CalibrateStepsArguments& arguments, const Registries& registries);

}  // namespace epocast
