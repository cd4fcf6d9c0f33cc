#include "sim/noise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "sim/mix_bits.hpp"
#include "sim/noise_draws.hpp"

namespace epocast {
namespace {

/// Uniform in (0, 1): never 0, whose logarithm does not exist.
double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

/// Box-Muller: one standard normal variate from two uniform ones.
double normal(std::uint64_t key) {
  return std::sqrt(-2 * std::log(uniform(mix_bits(key)))) *
         std::cos(2 * std::numbers::pi * uniform(mix_bits(key ^ 0x5851f42d4c957f2dU)));
}

/// Gamma of mean 1 and shape 1 / cv^2, by Marsaglia and Tsang (2000): a cubed normal, rejected now and then; for shapes
/// below 1 a variate of shape + 1 times a power of a uniform one.
double gamma(double cv, std::uint64_t key) {
  const double shape = 1 / (cv * cv);
  const double boosted = shape < 1 ? shape + 1 : shape;
  const double d = boosted - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  const double power = shape < 1 ? std::pow(uniform(mix_bits(key ^ 0x2545f4914f6cdd1dU)), 1 / shape) : 1;
  for (std::uint64_t attempt = mix_bits(key);; attempt = mix_bits(attempt)) {
    const double x = normal(attempt), root = 1 + c * x, v = root * root * root;
    if (root <= 0) continue;
    if (std::log(uniform(mix_bits(attempt ^ 0xd1342543de82ef95U))) < 0.5 * x * x + d - d * v + d * std::log(v))
      return d * v * power / shape;
  }
}

}  // namespace

std::shared_ptr<const NoiseTrace> NoiseTrace::from(std::vector<double> values) {
  NoiseTrace trace{std::move(values), 0};
  const auto n = static_cast<double>(trace.factors.size());
  const auto [least, most] = std::minmax_element(trace.factors.begin(), trace.factors.end());
  // Equal factors do not vary, not even by what their sum is rounded.
  const double mean = *least == *most ? *least : std::accumulate(trace.factors.begin(), trace.factors.end(), 0.0) / n;
  double square = 0;
  for (double& f : trace.factors) {
    f /= mean;
    square += (f - 1) * (f - 1);
  }
  trace.cv = std::sqrt(square / n);
  return std::make_shared<const NoiseTrace>(std::move(trace));
}

double NoiseModel::draw(double cv, std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const {
  if (cv <= 0) return 1;
  if (kind == NoiseKind::trace) {
    const std::uint64_t begin = mix_bits(mix_bits(mix_bits(seed)) ^ rank) % trace->factors.size();
    const double f = trace->factors[(begin + static_cast<std::uint64_t>(iteration)) % trace->factors.size()];
    return 1 + (f - 1) * cv / trace->cv;
  }
  return NoiseDraws(*this, cv).draw(task, rank, iteration);
}

double NoiseModel::mean_factor(std::uint32_t device, std::int64_t first, std::int64_t steps) const {
  if (compute_cv <= 0) return 1;
  const auto n = static_cast<double>(steps);
  if (kind != NoiseKind::trace) return NoiseDraws(*this, compute_cv / std::sqrt(n)).draw(0, device, first);
  const auto round = static_cast<std::int64_t>(trace->factors.size());  // all of which have mean 1
  double rest = 0;
  for (std::int64_t step = first; step < first + steps % round; ++step) rest += factor(0, device, step) - 1;
  return 1 + rest / n;
}

NoiseDraws::NoiseDraws(const NoiseModel& model, double cv)
    : kind_(model.kind), scope_(model.scope), cv_(cv), seed_bits_(mix_bits(model.seed)) {
  const double variance = std::log1p(cv * cv);  // of the logarithm
  spread_ = std::sqrt(variance);
  shift_ = variance / 2;
}

double NoiseDraws::draw(std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const {
  if (scope_ == NoiseScope::step) task = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t key =
      mix_bits(mix_bits(seed_bits_ ^ (std::uint64_t{task} << 32 | rank)) ^ static_cast<std::uint64_t>(iteration));
  return kind_ == NoiseKind::gamma ? gamma(cv_, key) : std::exp(spread_ * normal(key) - shift_);
}

}  // namespace epocast
