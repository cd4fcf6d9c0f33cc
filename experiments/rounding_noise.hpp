#pragma once
// Differences of times that should be equal.

#include <cmath>

namespace epocast {

/// 0 for what is left of a difference of sums by rounding; `scale` is the size of what was added up.
inline double without_rounding_noise(double difference, double scale) {
  return std::abs(difference) <= 1e-12 * std::abs(scale) ? 0 : difference;
}

}  // namespace epocast
