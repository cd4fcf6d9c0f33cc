// Training by a log against training written down directly, and against an example worked out by hand.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include "learning/rate.hpp"
#include "learning/replay.hpp"
#include "learning/samples.hpp"
#include "tests/support/recorded_log.hpp"

namespace epocast::replay_test {

using namespace epocast::learning;
using testing::record;

namespace {

ReplaySettings settings(const std::string& strategy, double rate, OptimizerSettings optimizer = {}) {
  ReplaySettings out;
  out.scheme = scheme_of(strategy);
  out.optimizer = optimizer;
  out.rate = [rate](const TrainingState&) { return rate; };
  return out;
}

Values train(const std::string& problem, const ProblemOptions& options, const ReplaySettings& how,
             const ParameterLog& log, std::int64_t worker_batch) {
  const auto made = make_problem(problem, options, 7);
  Replay replay(*made, how);
  replay.run({&log, worker_batch, worker_batch * log.workers, 0});
  return replay.parameters();
}

double largest_difference(const Values& a, const Values& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

const ProblemOptions kSmallDigits{{{"side", 8}, {"hidden", 6}, {"samples", 96}}, {}};
const ProblemOptions kSmallPhantoms{{{"side", 8}, {"channels", 2}, {"samples", 20}}, {}};
const ProblemOptions kSmallBlocks{{{"side", 8}, {"channels", 2}, {"blocks", 2}, {"samples", 20}}, {}};

struct Case {
  const char* name;
  ProblemOptions options;
};

}  // namespace

TEST_CASE("n synchronous workers are one worker with their batch", "[replay]") {
  const Case of = GENERATE(Case{"quadratic", {}}, Case{"logistic", {{{"samples", 200}}, {}}},
                           Case{"digits", kSmallDigits}, Case{"phantoms", kSmallPhantoms});
  const OptimizerSettings optimizer = GENERATE(OptimizerSettings{}, OptimizerSettings{.momentum = 0.9},
                                               OptimizerSettings{.kind = OptimizerSettings::adam});
  const double rate = 0.02;
  const ParameterLog lone = record({.strategy = "single", .iterations = 12}).log;
  const Values expected = train(of.name, of.options, settings("single", rate, optimizer), lone, 12);
  for (const int n : {2, 3, 4}) {
    const ParameterLog reduced = record({.strategy = "data_parallel", .workers = n, .iterations = 12}).log;
    CHECK(largest_difference(train(of.name, of.options, settings("data_parallel", rate, optimizer), reduced, 12 / n),
                             expected) < 1e-10);
    const ParameterLog served = record({.options = "{mode: sync}", .workers = n, .iterations = 12}).log;
    CHECK(largest_difference(train(of.name, of.options, settings("parameter_server", rate, optimizer), served, 12 / n),
                             expected) < 1e-10);
  }
}

TEST_CASE("one asynchronous worker is sequential SGD to the last bit", "[replay]") {
  const std::string strategy = GENERATE("parameter_server", "hogwild", "downpour", "agn", "async_momentum");
  const std::string options = strategy == "parameter_server" ? "{mode: async}" : "{}";
  const ParameterLog log = record({.strategy = strategy, .options = options, .iterations = 30}).log;
  const Values found = train("digits", kSmallDigits, settings(strategy, 0.1), log, 4);

  const auto problem = make_problem("digits", kSmallDigits, 7);
  Values x = problem->initial(), g(x.size());
  for (std::int64_t step = 0; step < 30; ++step) {
    std::vector<std::int64_t> batch(4);
    std::iota(batch.begin(), batch.end(), 4 * step);
    problem->gradient(x, batch, g);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= 0.1 * g[i];
  }
  CHECK(found == x);
}

TEST_CASE("two asynchronous workers, worked out by hand", "[replay]") {
  // Loss x^2 / 2 without noise, rate 1/2, from 1. A step takes 10 s, of the second worker 13 s: commits at 10 (first),
  // 13 (second), 20, 26, 30, 39, 40, .. Each subtracts half of what its worker read after its last commit.
  //   x0 = 1;                first reads 1, second reads 1
  //   10: x1 = 1 - 1/2 = 1/2;            first reads 1/2
  //   13: x2 = 1/2 - 1/2 = 0;            second reads 0
  //   20: x3 = 0 - 1/4 = -1/4;           first reads -1/4
  //   26: x4 = -1/4 - 0 = -1/4;          second reads -1/4
  //   30: x5 = -1/4 + 1/8 = -1/8;        first reads -1/8
  //   39: x6 = -1/8 + 1/8 = 0;           second reads 0
  //   40: x7 = 0 + 1/16 = 1/16
  const ParameterLog log = record({.options = "{mode: async}",
                                   .workers = 2,
                                   .iterations = 4,
                                   .slowdown = {1, 1.3, 1},
                                   .trace = TraceSource([](std::int64_t batch) {
                                     return testing::chain({testing::layer("A", 4, 6, 1e-6, {1e3})}, batch);
                                   })})
                               .log;
  const std::vector<double> expected{1, 0.5, 0, -0.25, -0.25, -0.125, 0, 0.0625};
  const std::vector<double> dates{0, 10, 13, 20, 26, 30, 39, 40};
  const auto problem = make_problem("quadratic", {{{"noise", 0}, {"samples", 1}}, {1}}, 1);
  ReplaySettings how = settings("parameter_server", 0.5);
  how.evaluations = std::numeric_limits<double>::infinity();
  Replay replay(*problem, how);
  replay.run({&log, 1, 2, 0});
  const std::vector<CurvePoint>& curve = replay.outcome().curve;
  REQUIRE(curve.size() >= expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n) {
    CHECK(curve[n].loss == Approx(expected[n] * expected[n] / 2).margin(1e-15));
    CHECK(curve[n].time == Approx(dates[n]).margin(0.01));
  }
}

TEST_CASE("DOWNPOUR and AGN differ by the factor lambda and nothing else", "[replay]") {
  // One worker, two local steps, one commit. With the gradients g1 (at x) and g2 (at x - rate g1): DOWNPOUR makes
  // x - rate (g1 + g2), AGN x - rate (g1 + g2) / 2.
  const int period = GENERATE(2, 3, 5);
  const std::string options = "{period: " + std::to_string(period) + "}";
  const auto problem = make_problem("logistic", {{{"samples", 200}}, {}}, 7);
  const Values from = problem->initial();
  Values moved[2];
  for (const bool normalised : {false, true}) {
    const std::string strategy = normalised ? "agn" : "downpour";
    const ParameterLog log = record({.strategy = strategy, .options = options, .iterations = 1}).log;
    moved[normalised ? 1 : 0] = train("logistic", {{{"samples", 200}}, {}}, settings(strategy, 0.3), log, 5);
  }
  for (std::size_t i = 0; i < from.size(); ++i)
    CHECK(moved[0][i] - from[i] == Approx(period * (moved[1][i] - from[i])).epsilon(1e-12));
  // The logs are the same but for the date at which normalising ends.
  const ParameterLog a = record({.strategy = "downpour", .options = options, .workers = 3, .iterations = 9}).log;
  ParameterLog b = record({.strategy = "agn", .options = options, .workers = 3, .iterations = 9}).log;
  std::erase_if(b.events, [](const ParameterEvent& event) { return event.kind == ParameterEvent::prepare; });
  REQUIRE(a.events.size() == b.events.size());
  for (std::size_t n = 0; n < a.events.size(); ++n) {
    CHECK(a.events[n].kind == b.events[n].kind);
    CHECK(a.events[n].rank == b.events[n].rank);
  }
}

TEST_CASE("every scheme learns logistic regression with four workers", "[replay]") {
  for (const std::string& strategy : schemes()) {
    if (strategy == "hogwild" || strategy.starts_with("two_chunk")) continue;  // need a node; need several layers
    if (strategy == "fsdp" || strategy.starts_with("zero") || strategy == "ddp" || strategy == "horovod")
      continue;  // presets
    CAPTURE(strategy);
    const int workers = strategy == "single" ? 1 : 4;
    testing::LogSetting setting{
        .strategy = strategy, .workers = workers, .iterations = 100, .noise = {.compute_cv = 0.2}};
    if (scheme_of(strategy).family == Scheme::pipeline)  // a layer for each stage
      setting.trace = TraceSource([](std::int64_t batch) {
        const auto layer = [](const char* name) { return testing::layer(name, 1e-2, 2e-2, 1e-4, {1e3}); };
        return testing::chain({layer("A"), layer("B"), layer("C"), layer("D")}, batch);
      });
    const ParameterLog log = record(setting).log;
    const auto problem = make_problem("logistic", {{{"samples", 1000}}, {}}, 7);
    Replay replay(*problem, settings(strategy, strategy == "adag" ? 0.02 : 0.2));
    replay.run({&log, 8, 8 * workers, 0});
    const LearningOutcome& outcome = replay.outcome();
    CHECK_FALSE(outcome.diverged);
    CHECK(outcome.curve.back().loss < 0.7 * outcome.curve.front().loss);
  }
}

TEST_CASE("gradients are those of the loss", "[problem]") {
  const Case of =
      GENERATE(Case{"quadratic", {{{"noise", 0}}, {}}}, Case{"logistic", {{{"samples", 30}}, {}}},
               Case{"digits", kSmallDigits}, Case{"phantoms", kSmallPhantoms}, Case{"phantoms", kSmallBlocks});
  const auto problem = make_problem(of.name, of.options, 3);
  std::vector<std::int64_t> all(static_cast<std::size_t>(problem->samples()));
  std::iota(all.begin(), all.end(), 0);
  Values x = problem->initial(), g(x.size()), ignored(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += 0.01 * std::sin(static_cast<double>(i));
  problem->gradient(x, all, g);
  for (std::size_t i = 0; i < x.size(); i += 1 + x.size() / 40) {
    const double step = 1e-5, kept = x[i];
    x[i] = kept + step;
    const double above = problem->evaluate(x).loss;
    x[i] = kept - step;
    const double below = problem->evaluate(x).loss;
    x[i] = kept;
    CHECK((above - below) / (2 * step) == Approx(g[i]).margin(2e-6).epsilon(1e-4));
  }
}

TEST_CASE("an epoch has every sample once, each epoch in another order", "[problem]") {
  const std::int64_t size = GENERATE(1, 2, 7, 64, 1000);
  const Shuffle shuffle(size, 5);
  std::vector<std::int64_t> first, second;
  for (std::int64_t k = 0; k < size; ++k) {
    first.push_back(shuffle(k));
    second.push_back(shuffle(size + k));
  }
  if (size > 7) CHECK(first != second);
  for (std::vector<std::int64_t>* epoch : {&first, &second}) {
    std::ranges::sort(*epoch);
    for (std::int64_t k = 0; k < size; ++k) CHECK((*epoch)[static_cast<std::size_t>(k)] == k);
  }
}

TEST_CASE("rates by rule", "[rate]") {
  const RateRule rule{
      .rate = 0.1, .reference = 64, .scaling = RateScaling::linear, .warmup = 5, .decays = {{80, 0.1}, {120, 0.1}}};
  CHECK(rule.at(0, 256) == Approx(0.1));
  CHECK(rule.at(2.5, 256) == Approx(0.25));
  CHECK(rule.at(5, 256) == Approx(0.4));
  CHECK(rule.at(80, 256) == Approx(0.04));
  CHECK(rule.at(121, 256) == Approx(0.004));
  CHECK(RateRule{.rate = 0.1, .reference = 64, .scaling = RateScaling::root}.at(1, 256) == Approx(0.2));
  // Lee 2020, 5.1.5: the first decay is by (B_s / B_m) beta, the next by beta.
  const RateRule lee{
      .rate = 0.2, .reference = 256, .scaling = RateScaling::linear, .decays = {{80, 0.1, true}, {120, 0.1}}};
  CHECK(lee.at(79, 2048) == Approx(1.6));
  CHECK(lee.at(80, 2048) == Approx(0.02));
  CHECK(lee.at(120, 2048) == Approx(0.002));
  // The same when accuracy saturates, whenever that is, beside one by epoch.
  const RateRule waits{.rate = 0.2,
                       .reference = 256,
                       .scaling = RateScaling::linear,
                       .decays = {{0, 0.1, true, true}, {90, 0.5}, {0, 0.1, false, true}}};
  CHECK(waits.saturations() == 2);
  CHECK(waits.at(80, 2048) == Approx(1.6));
  CHECK(waits.at(80, 2048, 1) == Approx(0.02));
  CHECK(waits.at(90, 2048, 1) == Approx(0.01));
  CHECK(waits.at(90, 2048, 2) == Approx(0.001));
}

TEST_CASE("training whose accuracy saturates goes on at a lower rate as often as it is asked to", "[replay]") {
  const ParameterLog log = record({.strategy = "single", .iterations = 60}).log;
  const auto run = [&](int saturations) {
    const auto problem = make_problem("digits", kSmallDigits, 3);
    ReplaySettings how = settings("single", 0);
    how.rate = [](const TrainingState& state) { return 1e-9 * std::pow(0.1, state.saturations); };
    // Nothing that so small a rate gains counts.
    how.stop.gain = 0.5;
    how.stop.patience = 2;
    how.stop.saturations = saturations;
    Replay replay(*problem, how);
    const PhaseEnd end = replay.run({.log = &log, .worker_batch = 50, .global_batch = 50});
    CHECK(end == PhaseEnd::no_gain);
    return replay.outcome().curve.back();
  };
  CHECK(run(0).epoch == Approx(2).margin(0.6));  // batches of 50 of 96 samples
  CHECK(run(0).rate == Approx(1e-9));
  CHECK(run(2).epoch == Approx(6).margin(1.6));
  CHECK(run(2).rate == Approx(1e-11));
}

TEST_CASE("uneven shares of a batch are that batch, with copies or without", "[replay]") {
  const auto trained = [](const ParameterLog& log, std::vector<std::int64_t> shares, std::int64_t batch) {
    const auto problem = make_problem("digits", kSmallDigits, 7);
    Replay replay(*problem, settings("data_parallel", 0.05, {.momentum = 0.9}));
    replay.run({.log = &log, .worker_batch = batch, .global_batch = batch, .shares = std::move(shares)});
    return std::pair(replay.parameters(), replay.epoch());
  };
  const auto alone = [&](std::int64_t batch) {
    return trained(record({.strategy = "single", .iterations = 9}).log, {}, batch);
  };
  const ParameterLog three = record({.strategy = "data_parallel", .workers = 3, .iterations = 9}).log;
  const auto uneven = trained(three, {4, 3, 3}, 10), copies = trained(three, {1, 1, 1}, 2);
  CHECK(largest_difference(uneven.first, alone(10).first) < 1e-10);
  CHECK(uneven.second == alone(10).second);
  CHECK(largest_difference(copies.first, alone(2).first) < 1e-10);
  CHECK(copies.second == alone(2).second);
}

}  // namespace epocast::replay_test
