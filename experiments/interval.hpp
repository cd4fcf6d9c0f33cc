#pragma once
// How far off a forecast may be because the constants behind it are not known better.

#include <functional>
#include <vector>

#include "costmodels/software_stack.hpp"

namespace epocast {

struct ForecastInterval {
  double low = 0, high = 0;
};

/// Of a forecast in seconds, from the ranges of the stack's constants, each of which holds the true value in nine of
/// ten cases. Constants are taken to be off independently of each other, so that what they add or take away adds up as
/// the root of the sum of squares, with what the stack leaves unexplained, and `also`, a share of the forecast that
/// other constants do. Of both together a share u is a factor of 1 + u, either way. `forecasts` simulates with other
/// stacks.
ForecastInterval interval_of(double seconds, const SoftwareStack& stack,
                             const std::function<std::vector<double>(const std::vector<SoftwareStack>&)>& forecasts,
                             double also = 0);

/// What nine of ten errors are within, if these (ln of forecast over truth) and others are normal around nothing
/// (Student's t); 0 without any.
double within_90(const std::vector<double>& errors);

/// The same of a forecast by constants that were fitted to steps like it, of which nine of ten are off by at most
/// `within`, in logarithms.
ForecastInterval interval_among_steps(double seconds, double within);

}  // namespace epocast
