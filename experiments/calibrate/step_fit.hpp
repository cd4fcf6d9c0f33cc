#pragma once
// Fits a few constants to a handful of measured training steps, by simulating them.
//
// A simulated step takes the longest of many sums of times, so it is piecewise linear in each constant (or in its
// reciprocal, for efficiencies). The steps are simulated at the current values and with each constant moved by one per
// cent; that gives the linear piece exactly. On it the robust regression of robust_fit.hpp finds the best values, where
// the steps are simulated again, until nothing moves: mostly three or four rounds. Cross-validation solves on the last
// piece without one step, and simulates that step with the values found.
//
// A constant with usual values (stack.scale: 0 or 1; network.efficiency: 1) is held at one of them unless steps are
// predicted better from each other where it is free (cross-validation; Stone, J. R. Stat. Soc. B 36, 1974): a handful
// of steps that lose next to nothing tells its value badly, and left-out steps pay for that. That several workers lose
// nothing at all, whatever the platform says of its links, is tried as well, and must predict ten times better. Each
// left-out step is predicted by a choice that the others made without it, and by what that leaves of the others
// (discrepancy.hpp).

#include <functional>
#include <string>
#include <vector>

#include "costmodels/robust_fit.hpp"
#include "experiments/calibrate/discrepancy.hpp"
#include "experiments/calibrate/step_calibration.hpp"

namespace epocast {

/// Which step to simulate, with which values of the constants.
struct StepTrial {
  std::size_t step = 0;
  std::vector<double> values;
};

/// Times of these trials, in their order [s]. Throws if one cannot be simulated.
using SimulateSteps = std::function<std::vector<double>(const std::vector<StepTrial>&)>;

struct StepFit {
  std::vector<FittedParameter> constants;  ///< with 95 % intervals; of one that is held, also its own where it is free
  std::vector<double> predicted;           ///< [s] by step, by the constants alone
  std::vector<double> left_out;            ///< [s] predicted from the other steps; empty for a single step
  Discrepancy discrepancy;                 ///< what the constants leave; none where compute.scale is not fitted
  std::vector<std::string> warnings;       ///< constants that the steps do not tell, or not apart
  std::vector<std::string> held;           ///< keys of constants that have a usual value
  int rounds = 0;
  std::size_t simulations = 0;
};

/// Fits `constants` to the measured times [s]. Intervals are those of Huber's regression (Huber and Ronchetti, Robust
/// Statistics, 2009, section 7.6) with Student's t for so few steps, and what was expected before. REQUIRES: at least
/// one of each; times positive. `places`: where the steps stand; without them, no discrepancy is looked for.
StepFit fit_steps(const std::vector<StepConstant>& constants, const std::vector<double>& measured,
                  const SimulateSteps& simulate, const std::vector<StepPlace>& places = {});

}  // namespace epocast
