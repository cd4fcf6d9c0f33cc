// What theory says of training on a quadratic, against the replay of simulated runs. Curvature h, rate eta, n workers,
// a sample's gradient noise of standard deviation s.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "learning/replay.hpp"
#include "tests/support/recorded_log.hpp"

namespace epocast::theory_test {

using namespace epocast::learning;
using testing::record;

namespace {

ReplaySettings settings(const std::string& strategy, RateFunction rate) {
  ReplaySettings out;
  out.scheme = scheme_of(strategy);
  out.rate = std::move(rate);
  return out;
}

RateFunction constant(double rate) {
  return [rate](const TrainingState&) { return rate; };
}

/// A log that goes on, of equal workers.
ParameterLog periodic(const std::string& strategy, const std::string& options, int workers, std::int64_t iterations) {
  ParameterLog log = record({.strategy = strategy, .options = options, .workers = workers, .iterations = 30}).log;
  REQUIRE(continue_by_period(log, 1, iterations));
  return log;
}

ProblemOptions quadratic(std::vector<double> spectrum, double noise, double distance, double samples) {
  return {{{"noise", noise}, {"distance", distance}, {"samples", samples}}, std::move(spectrum)};
}

/// Whether training on one curvature of 1, without noise, ends further from the optimum than it was in the middle.
bool grows(const std::string& strategy, const ParameterLog& log, double rate) {
  const auto problem = make_problem("quadratic", quadratic({1}, 0, 1, 100), 1);
  ReplaySettings how = settings(strategy, constant(rate));
  how.divergence = 1e30;
  Replay replay(*problem, how);
  if (replay.run({&log, 1, log.workers, 0}) == PhaseEnd::diverged) return true;
  const std::vector<CurvePoint>& curve = replay.outcome().curve;
  const std::size_t quarter = curve.size() / 4;
  double middle = 0, end = 0;
  for (std::size_t n = 0; n < quarter; ++n) {
    middle = std::max(middle, curve[quarter + n].loss);
    end = std::max(end, curve[curve.size() - 1 - n].loss);
  }
  return end > middle;
}

double largest_stable_rate(const std::string& strategy, const ParameterLog& log, double unstable) {
  double stable = 0;
  for (int halving = 0; halving < 14; ++halving) {
    const double rate = (stable + unstable) / 2;
    (grows(strategy, log, rate) ? unstable : stable) = rate;
  }
  return (stable + unstable) / 2;
}

}  // namespace

TEST_CASE("asynchronous workers diverge from the rate on that delay theory says", "[theory]") {
  // x(t + 1) = x(t) - eta h x(t - d) with d = n - 1 has a root of modulus 1, exp(i w), where w (d + 1/2) = pi / 2 and
  // eta h = 2 sin(w / 2) = 2 sin(pi / (2 (2 n - 1))).
  for (const int n : {1, 2, 4, 8, 16}) {
    const double expected = 2 * std::sin(std::numbers::pi / (2 * (2 * n - 1)));
    const ParameterLog log = periodic("parameter_server", "{mode: async}", n, 40'000 / n);
    CAPTURE(n, expected);
    CHECK(largest_stable_rate("parameter_server", log, 4) == Approx(expected).epsilon(0.01));
  }
}

TEST_CASE("DOWNPOUR diverges where AGN does not, between their limits", "[theory]") {
  // A worker's period of lambda steps from x makes (1 - eta h)^lambda x; what it commits is the difference, over lambda
  // with AGN. So the delayed recursion above has 1 - (1 - eta h)^lambda, or that over lambda, in place of eta h.
  constexpr int kWorkers = 8, kPeriod = 4;
  const double limit = 2 * std::sin(std::numbers::pi / (2 * (2 * kWorkers - 1)));
  const double downpour = 1 - std::pow(1 - limit, 1.0 / kPeriod);
  const double agn = 1 - std::pow(1 - kPeriod * limit, 1.0 / kPeriod);
  const double between = std::sqrt(downpour * agn);
  const std::string options = "{period: 4}";
  const ParameterLog summed = periodic("downpour", options, kWorkers, 3000);
  const ParameterLog normalised = periodic("agn", options, kWorkers, 3000);
  CHECK(grows("downpour", summed, between));
  CHECK_FALSE(grows("agn", normalised, between));
  CHECK(largest_stable_rate("downpour", summed, 1) == Approx(downpour).epsilon(0.02));
  CHECK(largest_stable_rate("agn", normalised, 1) == Approx(agn).epsilon(0.02));
}

namespace {

/// The momentum that asynchrony acts like: of the mean path over many random schedules, where
/// m(t + 1) - m(t) = mu (m(t) - m(t - 1)) - a m(t), by least squares.
double implicit_momentum(int workers, int schedules) {
  constexpr std::int64_t kIterations = 25;
  const auto commits = static_cast<std::size_t>(6 * workers);
  std::vector<double> mean(commits, 0);
  const testing::Star star(workers + 1, 1e9, 1e-6);
  const ConfigNode node = ConfigNode::load_text("{mode: async}", "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const TraceSource trace(
      [](std::int64_t batch) { return testing::chain({testing::layer("A", 1, 2, 1e-6, {1e2})}, batch); });
  const TrainingStep step = builtin_strategies()
                                .make("parameter_server", node, node)
                                ->compile({.cluster = star.cluster(),
                                           .workers = devices,
                                           .global_batch = workers,
                                           .trace = trace,
                                           .collective = {}});
  std::vector<testing::Run> runs;
  for (int seed = 1; seed <= schedules; ++seed) {
    ExecutionOptions how{.iterations = kIterations, .exact = true, .fold = false, .record_timeline = true};
    how.noise = {
        .compute_cv = 1, .seed = static_cast<std::uint64_t>(seed), .kind = NoiseKind::gamma, .scope = NoiseScope::step};
    runs.push_back({step.graph, how});
  }
  for (const ExecutionResult& result : testing::simulate(star.cluster(), runs)) {
    const ParameterLog log = testing::log_of(step.graph, 1, result.timeline, kIterations);
    const auto problem = make_problem("quadratic", quadratic({1}, 0, 1, 1), 1);
    ReplaySettings how = settings("parameter_server", constant(0.3));
    how.evaluations = std::numeric_limits<double>::infinity();
    Replay replay(*problem, how);
    mean.front() += 1.0 / schedules;
    std::size_t t = 1;
    replay.run({&log, 1, workers, 0}, [&](const CurvePoint&) {
      mean[t++] += replay.parameters().front() / schedules;
      return t < commits;
    });
  }
  double dd = 0, dm = 0, mm = 0, yd = 0, ym = 0;
  for (std::size_t t = 1; t + 1 < commits; ++t) {
    const double d = mean[t] - mean[t - 1], m = mean[t], y = mean[t + 1] - mean[t];
    dd += d * d;
    dm += d * m;
    mm += m * m;
    yd += y * d;
    ym += y * m;
  }
  return (yd * mm - ym * dm) / (dd * mm - dm * dm);
}

}  // namespace

TEST_CASE("exponential steps make asynchrony a momentum of 1 - 1/n", "[theory]") {
  // Mitliagkas et al. 2016, theorem 3.
  CHECK(implicit_momentum(4, 400) == Approx(0.75).margin(0.05));
}

TEST_CASE("implicit momentum for more workers", "[theory][long]") {
  const int n = GENERATE(2, 4, 8, 16);
  CHECK(implicit_momentum(n, 3000) == Approx(1 - 1.0 / n).margin(0.05));
}

namespace {

constexpr int kParallel = 200;  // independent directions: as many samples at once
constexpr double kRate = 0.2;   // eta h

struct Variances {
  double common = 0;  ///< of the centre, or of the workers' mean
  double worker = 0;  ///< of a worker's own parameters just before they are averaged
};

/// Averages over the rounds after the first 100. `per_round`: steps of each worker.
Variances stationary(const std::string& strategy, const std::string& options, int workers, int per_round, int rounds) {
  const ParameterLog log = periodic(strategy, options, workers, rounds);
  const auto problem =
      make_problem("quadratic", quadratic(std::vector<double>(kParallel, 1), 1, 0, workers * per_round), 1);
  ReplaySettings how = settings(strategy, constant(kRate));
  how.divergence = std::numeric_limits<double>::infinity();
  Replay replay(*problem, how);
  Variances sum;
  int counted = 0, seen = 0;
  const auto square = [](const Values& x) {
    double total = 0;
    for (const double value : x) total += value * value;
    return total / kParallel;
  };
  const bool own = scheme_of(strategy).family != Scheme::synchronous;
  replay.run({&log, 1, workers, 0}, [&](const CurvePoint& point) {
    if (++seen <= 100) return true;
    ++counted;
    sum.common += 2 * point.loss / kParallel;
    if (own) sum.worker += square(replay.worker(0));
    return true;
  });
  return {sum.common / counted, sum.worker / counted};
}

/// Of a worker's noise in a period: eta^2 s^2 (1 + a^2 + .. + a^(2 (period - 1))), a = 1 - eta h.
double period_noise(int period) {
  double sum = 0;
  for (int k = 0; k < period; ++k) sum += std::pow(1 - kRate, 2 * k);
  return kRate * kRate * sum;
}

/// Of the mean of n workers: eta^2 s^2 / n / (1 - a^2).
double sync_variance(int n) { return kRate * kRate / n / (1 - (1 - kRate) * (1 - kRate)); }

}  // namespace

TEST_CASE("stationary variance of synchronous SGD", "[theory]") {
  for (const int n : {1, 4})
    CHECK(stationary("data_parallel", "{}", n, 1, 2500).common == Approx(sync_variance(n)).epsilon(0.03));
}

TEST_CASE("stationary variances of local SGD and of model averaging", "[theory]") {
  // The mean takes the mean gradient in each step: synchronous SGD. A worker has, on top, what its own noise of this
  // period differs from the mean noise.
  constexpr int kWorkers = 4, kPeriod = 5;
  const std::string options = "{period: 5}";
  const double single = sync_variance(kWorkers) + (1 - 1.0 / kWorkers) * period_noise(kPeriod);
  for (const std::string strategy : {"local_sgd", "model_averaging"}) {
    CAPTURE(strategy);
    const Variances found = stationary(strategy, options, kWorkers, kPeriod, 800);
    CHECK(found.common == Approx(sync_variance(kWorkers)).epsilon(0.03));
    CHECK(found.worker == Approx(single).epsilon(0.03));
  }
}

TEST_CASE("stationary variance of elastic averaging", "[theory]") {
  // With b = a^period and the mean y = b m + noise of the workers at the end of a period:
  //   m' = (1 - beta/n) y + beta/n c,   c' = (1 - beta) c + beta y.
  // The covariances of (m, c) are the fixed point of that.
  constexpr int kWorkers = 4, kPeriod = 3;
  constexpr double kBeta = 0.9, kAlpha = kBeta / kWorkers;
  const double b = std::pow(1 - kRate, kPeriod), q = period_noise(kPeriod) / kWorkers;
  double mm = 0, mc = 0, cc = 0;
  for (int k = 0; k < 2000; ++k) {
    const double yy = b * b * mm + q, yc = b * mc;
    const double mm_next = (1 - kAlpha) * (1 - kAlpha) * yy + 2 * (1 - kAlpha) * kAlpha * yc + kAlpha * kAlpha * cc;
    const double cc_next = (1 - kBeta) * (1 - kBeta) * cc + 2 * (1 - kBeta) * kBeta * yc + kBeta * kBeta * yy;
    const double mc_next =
        (1 - kAlpha) * kBeta * yy + ((1 - kAlpha) * (1 - kBeta) + kAlpha * kBeta) * yc + kAlpha * (1 - kBeta) * cc;
    mm = mm_next;
    mc = mc_next;
    cc = cc_next;
  }
  CHECK(stationary("easgd", "{period: 3}", kWorkers, kPeriod, 2500).common == Approx(cc).epsilon(0.03));
}

TEST_CASE("steps to a loss are S (1 + B_c / B), with the noise scale of the full-batch path for B_c", "[theory]") {
  // McCandlish et al. 2018: with isotropic curvature the best rate is (1 / h) / (1 + N / B), where N = tr(noise
  // covariance) / |gradient|^2. A twentieth of it is used at each step, so that there are many.
  constexpr double kShare = 0.05, kTarget = 1, kDistance = 10;
  constexpr int kSize = 100;
  const auto noise_scale = [](std::span<const double> at) {
    double square = 0;
    for (const double x : at) square += x * x;
    return kSize / square;
  };
  const ParameterLog log = periodic("single", "{}", 1, 100'000);
  const auto steps = [&](std::int64_t batch, double noise, double* mean_scale) {
    const auto problem = make_problem(
        "quadratic", quadratic(std::vector<double>(kSize, 1), noise, kDistance, static_cast<double>(batch)), 1);
    ReplaySettings how = settings("single", [&, noise](const TrainingState& state) {
      return kShare / (1 + (noise > 0 ? noise_scale(state.parameters) / static_cast<double>(state.batch) : 0));
    });
    how.stop.loss = kTarget;
    how.stop.at_target = true;
    Replay replay(*problem, how);
    double sum = 0;
    int count = 0;
    replay.run({&log, batch, batch, 0}, [&](const CurvePoint&) {
      sum += noise_scale(replay.parameters());
      ++count;
      return true;
    });
    if (mean_scale != nullptr) *mean_scale = sum / count;
    REQUIRE(replay.outcome().reached);
    return replay.outcome().reached->epoch;
  };
  double expected = 0;  // B_c
  const double full = steps(1, 0, &expected);
  // Least squares of steps over 1/B.
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (const std::int64_t batch : {1, 2, 4, 8, 16, 32, 64}) {
    const double x = 1.0 / static_cast<double>(batch), y = steps(batch, 1, nullptr);
    n += 1;
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
    syy += y * y;
  }
  const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx), intercept = (sy - slope * sx) / n;
  const double r2 = std::pow(n * sxy - sx * sy, 2) / ((n * sxx - sx * sx) * (n * syy - sy * sy));
  CAPTURE(slope, intercept, full, expected, r2);
  CHECK(r2 >= 0.98);
  CHECK(intercept == Approx(full).epsilon(0.05));
  CHECK(slope / intercept == Approx(expected).epsilon(0.2));
}

}  // namespace epocast::theory_test
