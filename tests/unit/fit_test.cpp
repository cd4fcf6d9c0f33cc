// The mathematics of calibration: known systems, functions that a fit must find again, outliers that it must shrug off.
#include <catch2/catch.hpp>

#include <cmath>

#include "costmodels/dense.hpp"
#include "costmodels/kernel_fit.hpp"
#include "costmodels/network_fit.hpp"
#include "costmodels/residual_interpolation.hpp"
#include "costmodels/robust_fit.hpp"

namespace epocast::fit_test {

namespace {

constexpr double kRounding = 1e-12;

/// Numbers in -1..1, the same everywhere.
double wobble(int i) { return std::sin(12.9898 * i); }

}  // namespace

TEST_CASE("Cholesky solves, inverts and refuses") {
  SquareMatrix a(2);  // [4 2; 2 3]: determinant 8, inverse [3 -2; -2 4] / 8
  a(0, 0) = 4;
  a(1, 0) = a(0, 1) = 2;
  a(1, 1) = 3;
  const Cholesky factor(a);
  REQUIRE(factor.ok());
  const std::vector<double> x = factor.solve(std::vector<double>{8, 8});  // (24 - 16) / 8 = 1, (-16 + 32) / 8 = 2
  CHECK(x[0] == Approx(1).epsilon(kRounding));
  CHECK(x[1] == Approx(2).epsilon(kRounding));
  CHECK(factor.inverse()(1, 0) == Approx(-0.25).epsilon(kRounding));
  CHECK(factor.log_determinant() == Approx(std::log(8)).epsilon(kRounding));
  a(1, 1) = 0.5;  // 4 * 0.5 < 2 * 2: not positive definite
  CHECK_FALSE(Cholesky(a).ok());
}

TEST_CASE("a robust fit finds the constants, their interval holds them, and outliers do not move it") {
  // t = overhead + x / rate with 2 % of noise; every tenth point is five times too slow.
  const double overhead = 3e-6;
  const double rate = 2e9;
  std::vector<double> x, t;
  for (int i = 0; i < 60; ++i) {
    x.push_back(std::pow(10, 2 + 0.08 * i));
    t.push_back((overhead + x.back() / rate) * std::exp(0.02 * wobble(i)) * (i % 10 == 0 ? 5 : 1));
  }
  const RobustFit fit = fit_robustly(
      {{"overhead", "s", 1e-5, 2}, {"rate", "B/s", 1e9, 2}, {"unused", "", 7, 0}},
      [&](const std::vector<double>& v) {
        std::vector<double> e;
        for (std::size_t i = 0; i < x.size(); ++i) e.push_back(std::log((v[0] + x[i] / v[1]) / t[i]));
        return e;
      },
      0.05);
  CHECK(fit.parameters[0].value == Approx(overhead).epsilon(0.03));
  CHECK(fit.parameters[1].value == Approx(rate).epsilon(0.03));
  for (int p : {0, 1}) {
    const FittedParameter& f = fit.parameters[static_cast<std::size_t>(p)];
    CHECK(f.low < f.value);
    CHECK(f.value < f.high);
    CHECK(f.high / f.low < 1.2);  // 60 points at 2 % fix both to a few percent
  }
  CHECK(fit.parameters[2].value == 7);  // held fixed
  CHECK(fit.parameters[2].low == fit.parameters[2].high);
}

TEST_CASE("a robust fit takes the better of two valleys, if it is told where the other one is") {
  // Errors vanish at 100 only, but they are smaller at 1 than anywhere near it.
  const LogErrors errors = [](const std::vector<double>& v) {
    const double x = std::log(v[0]) / std::log(10);  // 0 at the expected value, 2 in the other valley
    return std::vector<double>{x < 1 ? 0.3 + x * x : x - 2};
  };
  const std::vector<FitParameter> one{{"x", "", 1, 10}};
  CHECK(fit_robustly(one, errors, 0.01).values()[0] < 3);
  CHECK(fit_robustly(one, errors, 0.01, {80}).values()[0] == Approx(100).epsilon(0.2));
  CHECK(fit_robustly(one, errors, 0.01, {1}).values() == fit_robustly(one, errors, 0.01).values());
}

TEST_CASE("interpolation returns what was measured, decays to nothing far away, and learns its lengths") {
  std::vector<InterpolationPoint> at;
  std::vector<double> y;
  for (int i = 0; i < 20; ++i) {
    at.push_back({{0.5 * i, static_cast<double>(i % 2)}});
    y.push_back(0.3 * std::sin(0.5 * i));  // the second coordinate does not matter
  }
  const InterpolationSettings settings = fit_interpolation(at, y);
  REQUIRE(settings.lengths.size() == 2);
  CHECK(settings.lengths[1] > settings.lengths[0]);
  const ResidualInterpolation process(settings, at, y);
  CHECK(process.mean(at[7]) == Approx(y[7]).margin(0.02));
  CHECK(process.mean({{3.75, 0}}) == Approx(0.3 * std::sin(3.75)).margin(0.03));
  CHECK(process.uncertainty(at[7]) < 0.2);
  CHECK(std::abs(process.mean({{1e3, 0}})) < 1e-9);
  CHECK(process.uncertainty({{1e3, 0}}) == Approx(1).margin(1e-6));
  const ResidualInterpolation nothing({{1, 1}, 0.3, 0.03}, {}, {});
  CHECK(nothing.mean({{0, 0}}) == 0);
  CHECK(nothing.uncertainty({{0, 0}}) == 1);
}

TEST_CASE("half of what interpolation learns of one amount holds for all amounts of the same thing") {
  const InterpolationSettings settings{.lengths = {1, 1}, .amplitude = 0.3, .noise = 0.03, .amounts = {0}};
  const ResidualInterpolation process(settings, {{{0, 0}}}, {0.2});
  const double here = 0.09 / (0.09 + 0.0009) * 0.2;  // of one point, Rasmussen and Williams, eq. 2.25
  CHECK(process.mean({{0, 0}}) == Approx(here));
  CHECK(process.mean({{1e3, 0}}) == Approx(here / 2));
  CHECK(std::abs(process.mean({{0, 1e3}})) < 1e-9);
  CHECK(process.uncertainty({{1e3, 0}}) == Approx(std::sqrt(1 - 0.25 * 0.09 / (0.09 + 0.0009))));
}

TEST_CASE("points of one kind say nothing of another kind at the same place") {
  const InterpolationSettings settings{.lengths = {1}, .amplitude = 0.3, .noise = 0.03};
  const ResidualInterpolation process(settings, {{{0}, "add"}, {{0}, "softmax"}}, {0.2, -0.4});
  const double learnt = 0.09 / (0.09 + 0.0009);
  CHECK(process.mean({{0}, "add"}) == Approx(0.2 * learnt));
  CHECK(process.mean({{0}, "softmax"}) == Approx(-0.4 * learnt));
  CHECK(process.mean({{0}, "loss"}) == 0);
  CHECK(process.uncertainty({{0}, "loss"}) == 1);
}

TEST_CASE("what one operation's kernels miss of the formula does not change another's time") {
  // Additions cross from a cache's bandwidth to memory's; softmax is of one bandwidth all over.
  const DeviceRates rates{FlopPerSecond(1e13), BytesPerSecond(1e12), 10};
  const auto softmax = [](std::int64_t values) { return 5e-6 + 4e-12 * static_cast<double>(values); };
  std::vector<KernelTiming> points;
  for (std::int64_t values = 1 << 16; values <= 1 << 27; values *= 2) {
    const double cached = values < 1 << 23 ? 0.4 : 1;
    points.push_back({{MemoryShape{"add", values}}, Seconds(5e-6 + cached * 5e-12 * static_cast<double>(values))});
    points.push_back({{MemoryShape{"softmax", values}}, Seconds(softmax(values))});
  }
  const KernelFit fit = fit_kernels(points, rates);
  for (std::int64_t values = 3 << 16; values < 1 << 27; values *= 2) {
    const double time = fit.time(kernel_work({MemoryShape{"softmax", values}}), rates);
    CAPTURE(values);
    CHECK(time == Approx(softmax(values)).epsilon(0.02));
  }
}

TEST_CASE("lengths of interpolation are learnt as well where one coordinate is an amount") {
  // What is left over depends on the second coordinate alone, the kind; the first, the amount, changes nothing.
  std::vector<InterpolationPoint> at;
  std::vector<double> y;
  for (int i = 0; i < 24; ++i) {
    at.push_back({{static_cast<double>(i % 3), 0.5 * (i / 3)}});
    y.push_back(0.3 * std::sin(0.5 * (i / 3)));
  }
  const InterpolationSettings settings = fit_interpolation(at, y, {0});
  CHECK(settings.amounts == std::vector<std::size_t>{0});
  CHECK(settings.lengths[0] > settings.lengths[1]);
  const ResidualInterpolation process(settings, at, y), without(fit_interpolation(at, y), at, y);
  const double expected = 0.3 * std::sin(1.5);
  CHECK(process.mean({{1, 1.5}}) == Approx(expected).margin(0.02));
  // Ten steps away the amounts in between were never seen.
  CHECK(std::abs(process.mean({{12, 1.5}}) - expected) < std::abs(without.mean({{12, 1.5}}) - expected));
}

TEST_CASE("a kernel fit predicts shapes that obey its formula") {
  // Products whose time is 10 us + FLOP / (0.6 * peak): half saturations near 0 as sizes are large.
  const DeviceRates rates{FlopPerSecond(1e13), BytesPerSecond(1e12), 10};
  std::vector<KernelTiming> points;
  for (std::int64_t m : {512, 1024, 2048, 4096})
    for (std::int64_t n : {512, 2048, 8192})
      for (std::int64_t k : {1024, 4096}) {
        const double flop = 2.0 * static_cast<double>(m * n * k);
        points.push_back({{GemmShape{m, n, k}, KernelPass::forward}, Seconds(1e-5 + flop / 6e12), 0});
      }
  const std::vector<HeldOut> held_out = cross_validate(points, rates);
  REQUIRE(held_out.size() == points.size());
  const FitQuality quality = quality_of(held_out);
  CHECK(quality.shapes == 24);
  CHECK(quality.final < 0.02);
  CHECK(quality.physical < 0.03);
  // Every shape has been left out: perturbing one measurement does not move the prediction for itself.
  std::vector<KernelTiming> changed = points;
  changed[5].time *= 10;
  CHECK(cross_validate(changed, rates)[5].roofline == Approx(held_out[5].roofline));
  CHECK(cross_validate(changed, rates)[5].final == Approx(held_out[5].final).epsilon(1e-9));
}

TEST_CASE("a network fit finds alpha, beta and a switch of protocol") {
  // Ring all-reduce, 5 us per step, 10 GB/s below 4 MB and 5 GB/s above.
  std::vector<CollectiveTiming> points;
  for (int p : {2, 4, 8, 16})
    for (double bytes = 1e5; bytes < 2e8; bytes *= 1.5) {
      const double beta = bytes < 4e6 ? 1e-10 : 2e-10;
      points.push_back({CollectiveOp::all_reduce, "test", p, bytes,
                        Seconds(2 * (p - 1) * 5e-6 + 2.0 * (p - 1) / p * bytes * beta), 0});
    }
  const std::vector<NetworkFit> fits = fit_networks(points, 0);
  REQUIRE(fits.size() == 1);
  CHECK(fits[0].quality.fitted * 3 <= static_cast<int>(points.size()));
  CHECK(fits[0].quality.error < 0.05);
  CHECK(fits[0].quality.error < fits[0].quality.alpha_beta);
  CHECK(fits[0].time(8, 1e8).value == Approx(14 * 5e-6 + 1.75 * 1e8 * 2e-10).epsilon(0.05));
  const AlphaBetaGamma link = fits[0].link(8, 1e8);
  CHECK(14 * link.alpha + 1.75 * 1e8 * link.beta == Approx(fits[0].time(8, 1e8).value));
  CHECK(fits[0].extrapolates(32, 1e6));
  CHECK_FALSE(fits[0].extrapolates(8, 1e6));
}

TEST_CASE("a third of the points at most is fitted, for any number of points") {
  for (int n : {1, 2, 3, 7, 35, 100}) {
    std::vector<CollectiveTiming> points;
    for (int i = 0; i < n; ++i)
      points.push_back({CollectiveOp::all_reduce, "x", 2 + i % 5, 1e6 * (1 + i), Seconds(1e-3), 0});
    for (int first : {0, 1, 2}) CHECK(thin_out(points, first).size() <= std::max<std::size_t>(1, points.size() / 3));
  }
}

}  // namespace epocast::fit_test
