#pragma once
// Closes the loop: are training steps on this machine as long as their kernels, timed one by one, say?

#include <iosfwd>
#include <vector>

#include "experiments/calibrate/microbench.hpp"

namespace epocast {

struct CheckedStep {
  std::string model;
  std::int64_t batch = 0;
  std::size_t kernels = 0, distinct = 0;
  Seconds predicted, step;                  ///< from medians
  Seconds predicted_fastest, step_fastest;  ///< from the fastest repetitions of each kernel, and the fastest step
  double spread = 0;                        ///< of the steps
  int repetitions = 0;                      ///< of the step

  double error() const { return predicted.value / step.value - 1; }
};

/// The networks, sizes and batch that the check uses if nobody says otherwise: small enough for a laptop.
MeasureOptions default_check();

/// Sums kernel times with what studies use (cost model `measured`, make_trace) for every model and batch size.
/// REQUIRES that `measured` has steps.
std::vector<CheckedStep> check_steps(const MeasuredKernels& measured, const std::vector<Model>& models,
                                     const MeasureOptions& options);

/// Prints a table; false if an error exceeds 10 %.
bool print_check(std::ostream& out, const MeasuredKernels& measured, const std::vector<CheckedStep>& steps);

}  // namespace epocast
