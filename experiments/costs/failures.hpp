#pragma once
// How much longer training takes on nodes that fail.
//
// Model: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
// Computer Systems 22 (2006) 303-312. Failures come at random, independent of each other (exponential times between
// them); a failure at any moment, writing and restarting included, throws training back to the last checkpoint.
// Scope and limits: spare nodes are at hand (waiting for one belongs into the restart time); training stands still
// while a checkpoint is written.

#include <optional>

#include "sim/quantity.hpp"

namespace epocast {

/// What is needed to say how failures lengthen training, all in s.
struct FailureModel {
  double mtbf = 0;                        ///< mean time between failures of any of the nodes; > 0
  double write = 0;                       ///< of one checkpoint; >= 0
  double restart = 0;                     ///< from a failure until training goes on from the last checkpoint; >= 0
  std::optional<double> checkpoint = {};  ///< training between two checkpoints; none: optimal_interval()
};

/// The training time between two checkpoints [s] for which the expected time of all is shortest, by Daly's equation 37:
/// sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 18M) - d for d < 2M, else M, with d the time to write and M the mean time
/// between failures. Its first term is Young's (Communications of the ACM 17 (1974) 530-531).
double optimal_interval(double mtbf, double write);

/// Expected time [s] of `useful` s of training, as Daly gives it: M e^(R/M) (e^((t+d)/M) - 1) useful / t, with R
/// the restart time and t the training time between two checkpoints, at most all of training: `useful`, or `all` s of
/// which these are a part. Infinite where no checkpoint is ever reached.
double expected_time(const FailureModel& model, double useful, std::optional<double> all = {});

}  // namespace epocast
