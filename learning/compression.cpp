#include "learning/compression.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace epocast::learning {
namespace {

/// The nearest number of half precision: eleven bits, the last of which is at least 2^-24.
double half(double value) {
  constexpr double kLargest = 65504;
  int exponent = 0;
  std::frexp(value, &exponent);
  const double last_bit = std::ldexp(1.0, std::max(exponent - 11, -24));
  return std::clamp(std::nearbyint(value / last_bit) * last_bit, -kLargest, kLargest);
}

void to_int8(std::span<double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  if (!(largest > 0)) return;
  const double step = largest / 127;
  for (double& value : values) value = std::nearbyint(value / step) * step;
}

void to_signs(std::span<double> values) {
  double sums[2] = {0, 0};
  std::int64_t counts[2] = {0, 0};
  for (const double value : values) {
    sums[value > 0] += value;
    ++counts[value > 0];
  }
  for (double& value : values) value = sums[value > 0] / static_cast<double>(counts[value > 0]);
}

void keep_largest(std::span<double> values, double share) {
  const auto kept = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  if (kept >= values.size()) return;
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto larger = [&](std::size_t a, std::size_t b) {
    const double x = std::abs(values[a]), y = std::abs(values[b]);
    return x != y ? x > y : a < b;
  };
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), larger);
  for (std::size_t i = kept; i < order.size(); ++i) values[order[i]] = 0;
}

constexpr const char* kNames[] = {"none", "fp16", "int8", "one_bit", "top_k"};  // in the order of the methods

}  // namespace

void Compression::apply(std::span<double> values, std::span<double> rest) const {
  if (keeps_rest())
    for (std::size_t i = 0; i < values.size(); ++i) rest[i] = values[i] += rest[i];
  switch (method) {
    case none: break;
    case fp16:
      for (double& value : values) value = half(value);
      break;
    case int8: to_int8(values); break;
    case one_bit: to_signs(values); break;
    case top_k: keep_largest(values, share); break;
  }
  if (keeps_rest())
    for (std::size_t i = 0; i < values.size(); ++i) rest[i] -= values[i];
}

std::vector<std::string> compression_names() { return {std::begin(kNames), std::end(kNames)}; }

Compression::Method compression_method(const std::string& name) {
  return static_cast<Compression::Method>(std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames));
}

}  // namespace epocast::learning
