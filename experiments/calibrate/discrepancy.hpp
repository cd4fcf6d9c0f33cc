#pragma once
// What fitted constants leave of measured steps, and what it says about steps near them.
//
// A simulated step that is fitted to measured ones still misses them by something: a mechanism that the simulator
// lacks, or a kernel that the library chooses for one batch size. Kennedy and O'Hagan (J. R. Stat. Soc. B 63, 2001,
// section 4) take that discrepancy for a smooth function of where a step stands, a Gaussian process around nothing, and
// find it from what is left of the measured steps. Here it is the logarithm of a factor on computing, over the
// logarithms of workers and batch size; steps of another platform, network or strategy say nothing about each other.
//
// Scope and limits: its length and how much of what is left is a step's own (kLength, kOwnShare) are given, not fitted:
// a handful of steps does not tell them. Far from all measured steps the factor is 1. What computing has no part in,
// such as a step that waits for its links alone, is not corrected.

#include <string>
#include <utility>
#include <vector>

namespace epocast {

/// Where a step stands among others.
struct StepPlace {
  std::string platform, model, strategy;
  double workers = 1, batch = 1;  ///< the batch is one worker's
};

/// What is left of a measured step, in logarithms.
struct StepRemainder {
  double error = 0;  ///< ln (measured / fitted)
  double slope = 1;  ///< d ln fitted / d ln (factor on computing)
  double doubt = 1;  ///< how many times the usual variance its own error has; wild steps have more
};

/// A smooth factor on computing.
class Discrepancy {
 public:
  /// By place, how far it pulls the logarithm of the factor there.
  struct Pull {
    StepPlace place;
    double weight = 0;
  };

  Discrepancy() = default;
  explicit Discrepancy(std::vector<Pull> pulls) : pulls_(std::move(pulls)) {}

  /// exp of the mean of the process at `place`; 1 without any steps.
  double factor(const StepPlace& place) const;
  const std::vector<Pull>& pulls() const { return pulls_; }

 private:
  std::vector<Pull> pulls_;
};

/// The discrepancy that steps at these places show. REQUIRES: as many remainders as places.
Discrepancy find_discrepancy(const std::vector<StepPlace>& places, const std::vector<StepRemainder>& remainders);

}  // namespace epocast
