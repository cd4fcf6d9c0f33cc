// Pipelines whose stages have weights of several ages, against recursions written down by hand.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "learning/replay.hpp"
#include "learning/stage_versions.hpp"
#include "tests/support/recorded_log.hpp"

namespace epocast::pipeline_replay_test {

using namespace epocast::learning;
using testing::record;
using Kind = ParameterEvent::Kind;

namespace {

const TraceSource kLayers([](std::int64_t batch) {
  return testing::chain({testing::layer("A", 1e-2, 2e-2, 1e-4, {1e3}), testing::layer("B", 1e-2, 2e-2, 1e-4, {1e3}),
                         testing::layer("C", 1e-2, 2e-2, 1e-4, {1e3}), testing::layer("D", 1e-2, 2e-2, 1e-4, {1e3})},
                        batch);
});

ParameterLog log_of(const std::string& options, int workers, std::int64_t iterations) {
  return record({.strategy = "pipeline",
                 .options = options,
                 .workers = workers,
                 .iterations = iterations,
                 .trace = kLayers})
      .log;
}

ReplaySettings settings(double rate, bool current = false) {
  ReplaySettings out;
  out.scheme = scheme_of("pipeline");
  out.scheme.current_weights = current;
  out.rate = [rate](const TrainingState&) { return rate; };
  return out;
}

Values train(const std::string& problem, const ProblemOptions& options, const ReplaySettings& how,
             const ParameterLog& log, std::int64_t batch) {
  const auto made = make_problem(problem, options, 7);
  Replay replay(*made, how);
  replay.run({.log = &log, .worker_batch = batch / log.workers, .global_batch = batch});
  return replay.parameters();
}

double largest_difference(const Values& a, const Values& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

const ProblemOptions kDigits{{{"side", 8}, {"hidden", 6}, {"samples", 96}}, {}};
const ProblemOptions kPhantoms{{{"side", 8}, {"channels", 2}, {"samples", 24}}, {}};

/// One curvature, so that parameters differ by the age of their weights only.
ProblemOptions bowl() { return {{{"noise", 0}, {"samples", 100}}, {0.5, 0.5, 0.5, 0.5}}; }

/// x of a stage whose batch k has the gradient of the version that `age` further updates have replaced when it is
/// applied.
double delayed(double rate, int age, int updates) {
  std::vector<double> x{1};
  for (int k = 0; k < updates; ++k)
    x.push_back(x.back() - rate * 0.5 * x[static_cast<std::size_t>(std::max(0, k - age))]);
  return x.back();
}

}  // namespace

TEST_CASE("pipelines with flush are one worker", "[pipeline]") {
  const std::string schedule =
      GENERATE("naive", "gpipe, micro_batches: 2", "1f1b, micro_batches: 2", "zb_h1, micro_batches: 2");
  const ParameterLog lone = record({.strategy = "single", .iterations = 8}).log;
  const ParameterLog stages = log_of("{schedule: " + schedule + "}", 2, 8);
  CHECK(stages.pieces.size() == 2);
  for (const auto& [name, options] : {std::pair{"digits", kDigits}, {"phantoms", kPhantoms}}) {
    const auto made = make_problem(name, options, 7);
    ReplaySettings single = settings(0.05);
    single.scheme = scheme_of("single");
    Replay replay(*made, single);
    replay.run({.log = &lone, .worker_batch = 4, .global_batch = 4});
    CHECK(largest_difference(train(name, options, settings(0.05), stages, 4), replay.parameters()) < 1e-10);
  }
}

TEST_CASE("replicas of a pipeline divide the batch", "[pipeline]") {
  const ParameterLog two = log_of("{schedule: 1f1b, stages: 2}", 4, 6), one = log_of("{schedule: 1f1b}", 2, 6);
  CHECK(two.workers == 2);
  CHECK(largest_difference(train("digits", kDigits, settings(0.05), two, 4),
                           train("digits", kDigits, settings(0.05), one, 4)) < 1e-10);
}

TEST_CASE("stashed weights: stage s of p is p - 1 - s updates behind", "[pipeline]") {
  const int stages = GENERATE(2, 4);
  const ParameterLog log = log_of("{schedule: pipedream}", stages, 12);
  const Values x = train("quadratic", bowl(), settings(0.3), log, stages);
  const int per_stage = 4 / stages;
  for (int i = 0; i < 4; ++i)
    CHECK(x[static_cast<std::size_t>(i)] == Approx(delayed(0.3, stages - 1 - i / per_stage, 12)).epsilon(1e-12));
}

TEST_CASE("double-buffered weights: every stage is one update behind", "[pipeline]") {
  const ParameterLog log = log_of("{schedule: 2bw, micro_batches: 2}", 2, 12);
  for (const double x : train("quadratic", bowl(), settings(0.3), log, 2))
    CHECK(x == Approx(delayed(0.3, 1, 12)).epsilon(1e-12));
}

TEST_CASE("errors travel back through weights as they have become", "[pipeline]") {
  // Of a perceptron the second layer's gradient does not know them, and the first one's is linear in them.
  const auto problem = make_problem("digits", kDigits, 7);
  const Values at = problem->initial();
  const std::vector<std::int64_t> positions{0, 1, 2};
  Values own(at.size()), through(at.size()), twice(at.size()), doubled = at;
  for (double& value : doubled) value *= 2;
  problem->gradient(at, positions, own);
  problem->gradient_of_passes(at, at, positions, through);
  CHECK(own == through);
  problem->gradient_of_passes(at, doubled, positions, twice);
  const std::size_t first_layer = 6 * 64;
  for (std::size_t i = 0; i < first_layer; ++i) CHECK(twice[i] == Approx(2 * own[i]).margin(1e-15));
  const std::size_t second_layer = 6 * 65;
  for (std::size_t i = second_layer; i < second_layer + 60; ++i) CHECK(twice[i] == own[i]);
}

TEST_CASE("current weights differ from stashed ones where errors travel through layers", "[pipeline]") {
  // The last stage does a batch's backward pass right after its forward pass, and the first one's weights lead to no
  // gradient: it takes stages between them. A quadratic has no layers.
  const ParameterLog log = log_of("{schedule: threaded, in_flight: 4}", 4, 30);
  CHECK(std::ranges::count(log.events, Kind::gradient, &ParameterEvent::kind) == 120);
  const auto difference = [&](const std::string& problem, const ProblemOptions& options) {
    return largest_difference(train(problem, options, settings(0.1, true), log, 4),
                              train(problem, options, settings(0.1), log, 4));
  };
  CHECK(difference("quadratic", bowl()) == 0);
  CHECK(difference("phantoms", kPhantoms) > 0);
  CHECK(difference("phantoms", kPhantoms) < 0.1);
}

TEST_CASE("no more versions are kept than batches under way need", "[pipeline]") {
  StageVersions versions({{0, 1}, {1, 2}}, {1, 2}, 1);
  for (std::int64_t batch = 0; batch < 100; ++batch) {
    for (const std::size_t stage : {0, 1}) versions.begin_forward(batch, stage, 0);
    for (const std::size_t stage : {1, 0}) {
      CHECK(versions.forward_weights(batch, 0) ==
            Values{1.0 + static_cast<double>(batch), 2.0 + static_cast<double>(batch)});
      REQUIRE(versions.update(stage, 0));
      versions.add(stage, {2.0 + static_cast<double>(batch), 3.0 + static_cast<double>(batch)});
    }
    versions.forget(batch);
    CHECK(versions.kept() == 2);
  }
}

}  // namespace epocast::pipeline_replay_test
