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
  if (sums) out += fmt::format(", sums: {}", to_string(*sums));
  return "{" + (out.empty() ? "n: 1" : out) + "}";
}

namespace {

/// The same degrees with sums along every other dimension than the first that is long enough.
void add_sums(const DimensionLimits& limits, const Degrees& made, std::vector<Degrees>& out) {
  if (made[Dimension::k] == 1) return;
  bool is_first = true;
  for (const Dimension d : kSumDimensions) {
    if (limits[static_cast<std::size_t>(d)] / made[d] < made[Dimension::k]) continue;
    if (!is_first) out.push_back(made), out.back().sums = d;
    is_first = false;
  }
}

void add_degrees(std::int64_t devices, const DimensionLimits& limits, std::size_t dimension, Degrees& made,
                 std::vector<Degrees>& out) {
  if (dimension == kDimensions) {
    out.push_back(made);
    add_sums(limits, made, out);
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
