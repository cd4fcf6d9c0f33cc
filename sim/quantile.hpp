#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace epocast {

/// The value below which a share (0..1) of `values` lies, linear between neighbours (type 7 of Hyndman and Fan 1996); 0
/// of none.
inline double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace epocast
