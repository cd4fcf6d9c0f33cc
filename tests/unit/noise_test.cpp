// Noise multiplies compute times by exp(s Z - s^2/2) with Z standard normal and s^2 = ln(1 + cv^2): log-normal, of mean
// 1 and coefficient of variation cv.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "sim/execution.hpp"
#include "tests/support/mean.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::noise_test {

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

}  // namespace

TEST_CASE("noise has mean 1 and the coefficient of variation asked for", "[noise]") {
  for (const double cv : {0.02, 0.1, 0.5}) {
    INFO("cv " << cv);
    const std::vector<double> values = draws({.compute_cv = cv, .seed = 7});
    // The mean of N draws has standard deviation cv / sqrt(N). 4 of them: a fair generator fails once in 16000.
    CHECK(std::abs(testing::mean(values) - 1) < 4 * cv / std::sqrt(kDraws));
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

TEST_CASE("gamma noise has mean 1, its coefficient of variation, and is exponential at 1", "[noise]") {
  for (const double cv : {0.1, 0.5, 1.0, 2.0}) {
    INFO("cv " << cv);
    const std::vector<double> values = draws({.compute_cv = cv, .seed = 3, .kind = NoiseKind::gamma});
    CHECK(std::abs(testing::mean(values) - 1) < 4 * cv / std::sqrt(kDraws));
    double square = 0;
    for (const double v : values) square += (v - 1) * (v - 1);
    // As above, with a gamma's kurtosis of 3 + 6 cv^2.
    const double spread = 0.5 * std::sqrt((2 + 6 * cv * cv) / kDraws);
    CHECK(std::abs(std::sqrt(square / kDraws) / cv - 1) < 4 * spread);
    CHECK(*std::min_element(values.begin(), values.end()) >= 0);
  }
  // An exponential variate exceeds x with probability exp(-x).
  const std::vector<double> values = draws({.compute_cv = 1, .seed = 8, .kind = NoiseKind::gamma});
  for (const double x : {0.1, 1.0, 3.0}) {
    const auto above =
        static_cast<double>(std::count_if(values.begin(), values.end(), [&](double v) { return v > x; })) / kDraws;
    const double p = std::exp(-x);
    CHECK(std::abs(above - p) < 4 * std::sqrt(p * (1 - p) / kDraws));
  }
}

TEST_CASE("a trace of equal factors does not vary", "[noise]") {
  // The sum of three tenths is rounded; their mean is not a tenth.
  CHECK(NoiseTrace::from({0.1, 0.1, 0.1})->cv == 0);
}

TEST_CASE("a trace is taken in its order, scaled to mean 1 and to the variation asked for", "[noise]") {
  // 2, 4, 6 become 1/2, 1, 3/2: standard deviation sqrt(1/6). With twice that variation: 0, 1, 2.
  const auto trace = NoiseTrace::from({2, 4, 6});
  CHECK(trace->cv == Approx(std::sqrt(1 / 6.0)));
  NoiseModel noise{.compute_cv = trace->cv, .seed = 1, .kind = NoiseKind::trace, .trace = trace};
  const std::vector<double> factors{0.5, 1, 1.5};
  const auto begin =
      std::find_if(factors.begin(), factors.end(), [&](double f) { return f == Approx(noise.factor(0, 0, 0)); });
  REQUIRE(begin != factors.end());
  for (std::int64_t k = 0; k < 7; ++k) {
    const auto place = static_cast<std::size_t>(begin - factors.begin() + k) % 3;
    CHECK(noise.factor(5, 0, k) == Approx(factors[place]));  // of all tasks of the iteration
  }
  noise.compute_cv = trace->cv / 2;
  CHECK(std::abs(noise.factor(0, 0, 0) - 1) == Approx(std::abs(*begin - 1) / 2).margin(1e-12));
}

TEST_CASE("noise per step is the same for all of a rank's tasks", "[noise]") {
  const NoiseModel noise{.compute_cv = 0.3, .seed = 2, .scope = NoiseScope::step};
  CHECK(noise.factor(1, 4, 7) == noise.factor(9, 4, 7));
  CHECK(noise.factor(1, 4, 7) != noise.factor(1, 5, 7));
  CHECK(noise.factor(1, 4, 7) != noise.factor(1, 4, 8));
}

TEST_CASE("noise per step: each device has factors of its own, whatever group it is in", "[noise]") {
  // Groups of one device each; and two of the same, whose computations are slow together.
  CyclicTaskGraph graph;
  const std::vector<std::pair<const char*, DeviceId>> groups{{"a", 0}, {"b", 1}, {"c", 0}};
  for (const auto& [name, device] : groups)
    graph.compute(graph.add_queue(name, graph.add_group(name, {device}), QueueRole::compute, Discipline::program_order),
                  Seconds(1), {name, ""});
  const auto trace = NoiseTrace::from({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  const testing::Star star(2, 1e9, 0);
  for (const NoiseModel& noise : {NoiseModel{.compute_cv = 0.3, .scope = NoiseScope::step},
                                  NoiseModel{.compute_cv = trace->cv, .kind = NoiseKind::trace, .trace = trace}}) {
    const ExecutionResult result =
        testing::simulate(star.cluster(), graph, {.exact = true, .noise = noise, .record_timeline = true});
    const auto end = [&](const char* name) { return testing::interval(graph, result, name).end; };
    CHECK(end("a") != end("b"));
    CHECK(end("a") == end("c"));
  }
}

TEST_CASE("several steps of a trace are the mean of their factors", "[noise]") {
  const auto trace = NoiseTrace::from({2, 4, 6});
  const NoiseModel noise{.compute_cv = trace->cv, .kind = NoiseKind::trace, .trace = trace};
  CHECK(noise.mean_factor(0, 5, 3) == Approx(1));
  CHECK(noise.mean_factor(0, 5, 7) == Approx((6 + noise.factor(0, 0, 5)) / 7));
}

}  // namespace epocast::noise_test
