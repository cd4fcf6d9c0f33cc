#pragma once
// How far off a forecast may be because the constants behind it are not known better.

#include <functional>

#include "costmodels/software_stack.hpp"

namespace epocast {

struct ForecastInterval {
  double low = 0, high = 0;
};

/// Of a forecast in seconds, from the ranges of the stack's constants, each of which holds the true value in nine of
/// ten cases. Constants are taken to be off independently of each other, so that what they add or take away adds up as
/// the root of the sum of squares, with what the stack leaves unexplained. `forecast` simulates with another stack; it
/// is called twice for every range.
ForecastInterval interval_of(double seconds, const SoftwareStack& stack,
                             const std::function<double(const SoftwareStack&)>& forecast);

}  // namespace epocast
