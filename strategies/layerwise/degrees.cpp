#include "strategies/layerwise/degrees.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace epocast {

const char* to_string(Dimension dimension) {
  constexpr const char* kNames[] = {"n", "c", "h", "w", "k"};
  return kNames[static_cast<std::size_t>(dimension)];
}

std::int64_t Degrees::product() const {
  std::int64_t out = 1;
  for (const int degree : of) out *= degree;
  return out;
}

std::string Degrees::text() const {
  std::string out;
  for (const Dimension d : kAllDimensions)
    if ((*this)[d] > 1) out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", to_string(d), (*this)[d]);
  return "{" + (out.empty() ? "n: 1" : out) + "}";
}

namespace {

void add_degrees(std::int64_t devices, const DimensionLimits& limits, std::size_t dimension, Degrees& made,
                 std::vector<Degrees>& out) {
  if (dimension == kDimensions) {
    out.push_back(made);
    return;
  }
  for (std::int64_t degree = 1; degree <= std::min(devices, limits[dimension]); ++degree) {
    if (devices % degree != 0) continue;
    made.of[dimension] = static_cast<int>(degree);
    add_degrees(devices / degree, limits, dimension + 1, made, out);
  }
  made.of[dimension] = 1;
}

}  // namespace

std::vector<Degrees> all_degrees(std::int64_t devices, const DimensionLimits& limits) {
  std::vector<Degrees> out;
  Degrees made;
  add_degrees(devices, limits, 0, made, out);
  return out;
}

}  // namespace epocast
