#pragma once
// The mean of measured or drawn values.

#include <vector>

namespace epocast::testing {

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace epocast::testing
