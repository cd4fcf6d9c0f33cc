#pragma once
// What rounding may do to a number.

#include <algorithm>
#include <cmath>

namespace epocast {

/// Whether two numbers can be one, but for the order of a few sums.
inline bool nearly_equal(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

}  // namespace epocast
