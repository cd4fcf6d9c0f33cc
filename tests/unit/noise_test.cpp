// Noise multiplies compute times by exp(s Z - s^2/2) with Z standard normal and s^2 = ln(1 + cv^2): log-normal, of mean
// 1 and coefficient of variation cv.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>
#include <vector>

#include "sim/execution.hpp"

using namespace epocast;

namespace {

constexpr int kDraws = 100'000;

/// Draws as an execution makes them: tasks x ranks x iterations.
std::vector<double> draws(const NoiseModel& noise) {
  std::vector<double> out;
  for (std::uint32_t task = 0; task < 10; ++task)
    for (std::uint32_t rank = 0; rank < 10; ++rank)
      for (std::int64_t iteration = 0; iteration < kDraws / 100; ++iteration)
        out.push_back(noise.factor(task, rank, iteration));
  return out;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("noise has mean 1 and the coefficient of variation asked for", "[noise]") {
  for (const double cv : {0.02, 0.1, 0.5}) {
    INFO("cv " << cv);
    const std::vector<double> values = draws({.compute_cv = cv, .seed = 7});
    // The mean of N draws has standard deviation cv / sqrt(N). 4 of them: a fair generator fails once in 16000.
    CHECK(std::abs(mean(values) - 1) < 4 * cv / std::sqrt(kDraws));
    double square = 0;
    for (const double v : values) square += (v - 1) * (v - 1);
    // The variance's own relative standard deviation is sqrt((kurtosis - 1) / N); a log-normal's kurtosis is
    // w^4 + 2 w^3 + 3 w^2 - 3 with w = 1 + cv^2. That of the standard deviation is half as large.
    const double w = 1 + cv * cv;
    const double kurtosis = std::pow(w, 4) + 2 * std::pow(w, 3) + 3 * w * w - 3;
    const double spread = 0.5 * std::sqrt((kurtosis - 1) / kDraws);
    CHECK(std::abs(std::sqrt(square / kDraws) / cv - 1) < 4 * spread);
  }
}

TEST_CASE("the logarithm of noise is normal", "[noise]") {
  // Of a normal variate 68.27 % lie within one standard deviation and 95.45 % within two; 4 sqrt(p (1 - p) / N) of
  // slack.
  const double cv = 0.3, variance = std::log1p(cv * cv);
  int within_one = 0, within_two = 0;
  for (const double v : draws({.compute_cv = cv, .seed = 3})) {
    const double z = (std::log(v) + variance / 2) / std::sqrt(variance);
    within_one += std::abs(z) < 1;
    within_two += std::abs(z) < 2;
  }
  CHECK(std::abs(within_one / double{kDraws} - 0.6827) < 4 * std::sqrt(0.6827 * 0.3173 / kDraws));
  CHECK(std::abs(within_two / double{kDraws} - 0.9545) < 4 * std::sqrt(0.9545 * 0.0455 / kDraws));
}

TEST_CASE("noise depends on task, rank, iteration and seed, and on nothing else", "[noise]") {
  const NoiseModel noise{.compute_cv = 0.1, .seed = 1};
  const double once = noise.factor(3, 2, 5);
  noise.factor(9, 9, 9);  // other draws in between change nothing
  CHECK(noise.factor(3, 2, 5) == once);

  std::set<double> distinct;
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    for (std::uint32_t task = 0; task < 5; ++task)
      for (std::uint32_t rank = 0; rank < 5; ++rank)
        for (std::int64_t iteration = 0; iteration < 5; ++iteration)
          distinct.insert(NoiseModel{0.1, seed}.factor(task, rank, iteration));
  CHECK(distinct.size() == 625);
}

TEST_CASE("neighbouring draws are not correlated", "[noise]") {
  // The correlation of N independent pairs has standard deviation 1 / sqrt(N).
  const std::vector<double> values = draws({.compute_cv = 0.1, .seed = 11});
  double product = 0;
  for (std::size_t i = 1; i < values.size(); ++i) product += (values[i] - 1) * (values[i - 1] - 1);
  CHECK(std::abs(product / 0.01 / kDraws) < 4 / std::sqrt(kDraws));
}

TEST_CASE("without variation the factor is 1", "[noise]") { CHECK(NoiseModel{}.factor(1, 2, 3) == 1); }
