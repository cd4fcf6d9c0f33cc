#pragma once
// What `epocast calibrate steps` prints and draws.

#include <iosfwd>
#include <string>

#include "experiments/calibrate/step_fit.hpp"
#include "experiments/calibrate/step_measurements.hpp"

namespace epocast {

/// Every step with its residual before the fit, after it, and predicted from the others; the constants with 95 %
/// intervals; what to beware of. `before`: times without the constants [s].
void print_report(std::ostream& out, const StepMeasurements& measured, const std::vector<double>& before,
                  const StepFit& fit);
std::string plot_steps(const StepMeasurements& measured, const StepFit& fit);

StepCalibration to_calibration(const StepMeasurements& measured, const StepFit& fit);

}  // namespace epocast
