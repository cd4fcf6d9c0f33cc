#include <cmath>
#include <numbers>

#include "sim/execution.hpp"

namespace epocast {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): a bijective mixer good enough to hash counters into random bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Uniform in (0, 1): never 0, whose logarithm does not exist.
double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

}  // namespace

double NoiseModel::factor(std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const {
  if (compute_cv <= 0) return 1;
  const std::uint64_t key =
      mix(mix(mix(seed) ^ (std::uint64_t{task} << 32 | rank)) ^ static_cast<std::uint64_t>(iteration));
  // Box-Muller: one standard normal variate from two uniform ones.
  const double normal = std::sqrt(-2 * std::log(uniform(mix(key)))) *
                        std::cos(2 * std::numbers::pi * uniform(mix(key ^ 0x5851f42d4c957f2dU)));
  const double variance = std::log1p(compute_cv * compute_cv);  // of the logarithm
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace epocast
