#pragma once
// Robust non-linear regression with prior knowledge: Levenberg-Marquardt on a loss that outliers do not dominate.

#include <functional>
#include <string>
#include <vector>

namespace epocast {

/// One free parameter. Fitted by its logarithm, so it stays positive.
struct FitParameter {
  std::string name;
  std::string unit;     ///< "" or "s"
  double expected = 1;  ///< where it lies if the data say nothing
  double spread = 1;    ///< standard deviation of its logarithm before seeing data; 0 holds it fixed
};

/// A value with its 95 % interval.
struct FittedParameter {
  std::string name;
  std::string unit;
  double value = 0;
  double low = 0;
  double high = 0;
};

struct RobustFit {
  std::vector<FittedParameter> parameters;
  std::vector<double> values() const;
};

/// Natural logarithms of predicted over measured, one per measurement, for these parameter values.
using LogErrors = std::function<std::vector<double>(const std::vector<double>& values)>;

/// Minimises sum rho((e / error_scale)^2) + sum (ln(value / expected) / spread)^2 with rho(z) = 2 (sqrt(1 + z) - 1),
/// which grows like |e| for large errors e. Intervals come from the Jacobian at the minimum, scaled by the robust
/// spread of the errors. `error_scale`: the size of a usual error in ln time. The search begins at the expected values
/// and, if there are any, at `also_from` (positive, one for each parameter); the better end counts.
RobustFit fit_robustly(const std::vector<FitParameter>& parameters, const LogErrors& errors, double error_scale,
                       const std::vector<double>& also_from = {});

}  // namespace epocast
