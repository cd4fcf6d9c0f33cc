// Schedules by rule: which phases they are, who trains in them, and those that learning decides.
#include <catch2/catch.hpp>

#include <cmath>

#include "experiments/batch_schedule.hpp"
#include "experiments/learning/curves.hpp"
#include "experiments/run_study.hpp"

namespace epocast::batch_schedule_test {

namespace {

constexpr const char* kStudy = R"(
study: doubling
platform: ideal_star_1024
model: mlp_mnist
workers: 16
dataset: {samples: 1000}
)";

std::vector<ScenarioResult> run(const std::string& more) {
  return run_study(parse_study(kStudy + more, "study").scenarios, builtin_registries(), {}, 1, {});
}

ConfigNode rule(const std::string& text) { return ConfigNode::load_text(text, "rule"); }

}  // namespace

TEST_CASE("as many workers train as the batch can be divided over", "[schedule]") {
  CHECK(active_workers(256, 64) == 64);
  CHECK(active_workers(16, 128) == 16);
  CHECK(active_workers(100, 64) == 50);  // two samples each; the others are idle
  CHECK(active_workers(12, 8) == 6);
  CHECK(active_workers(7, 4) == 1);
  for (std::int64_t batch = 1; batch <= 60; ++batch)
    for (std::int64_t workers = 1; workers <= 20; ++workers) {
      std::int64_t most = 0;
      for (std::int64_t n = 1; n <= workers; ++n)
        if (batch % n == 0) most = n;
      CHECK(active_workers(batch, workers) == most);
    }
}

TEST_CASE("the batch doubles every so many epochs", "[schedule]") {
  const BatchDoubling doubling =
      read_batch_doubling(rule("{rule: doubling, from: 64, to: 200, every: 10, epochs: 45}"), {0, 1, 2, 3}, 1000);
  const std::vector<PhaseSettings> phases = doubling.phases(doubling.every, 1000, false);
  REQUIRE(phases.size() == 3);
  CHECK(phases[0].global_batch == 64);
  CHECK(phases[0].epochs == 10);
  CHECK(phases[0].iterations == 160);  // 16 steps an epoch, the last with fewer samples
  CHECK(phases[1].global_batch == 128);
  CHECK(phases[2].global_batch == 200);
  CHECK(phases[2].epochs == 25);
  std::int64_t epochs = 0;
  for (const PhaseSettings& phase : phases) epochs += phase.epochs;
  CHECK(epochs == 45);
  // Training may end before the batch has grown.
  CHECK(doubling.phases(100, 1000, false).size() == 1);
}

TEST_CASE("a rule gives what its phases give one by one", "[schedule]") {
  const ScenarioResult by_rule = run("schedule: {rule: doubling, from: 8, to: 32, every: 2, epochs: 7}\n").front();
  const ScenarioResult by_list = run("schedule: [{epochs: 2, batch.global: 8, workers: 8}, {epochs: 2, batch.global: "
                                     "16}, {epochs: 3, batch.global: 32}]\n")
                                     .front();
  REQUIRE(by_rule.error.empty());
  CHECK(by_rule.total_s == by_list.total_s);
  CHECK(by_rule.comm_bytes_per_epoch == by_list.comm_bytes_per_epoch);
}

TEST_CASE("rules that cannot be", "[schedule]") {
  const auto problem = [](const std::string& schedule) { return run("schedule: " + schedule + "\n").front().error; };
  CHECK_THAT(problem("{rule: double, from: 8, to: 32, every: 2, epochs: 7}"), Catch::Contains("valid: doubling"));
  CHECK_THAT(problem("{rule: doubling, from: 64, to: 32, every: 2, epochs: 7}"), Catch::Contains("32 is too small"));
  CHECK_THAT(problem("{rule: doubling, from: 8, to: 32, every: 0, epochs: 7}"), Catch::Contains("schedule.every"));
  CHECK_THAT(problem("{rule: doubling, from: 8, to: 2000, every: 1, epochs: 7}"), Catch::Contains("schedule.to"));
  CHECK_THAT(problem("{rule: doubling, from: 8, to: 32, every: adaptive, epochs: 7}"),
             Catch::Contains("no `learning` block"));
}

TEST_CASE("learning decides when the batch doubles", "[schedule]") {
  const std::string schedule = "schedule: {rule: doubling, from: 8, to: 32, every: adaptive, epochs: 30}\n";
  const std::string learning =
      "learning: {problem: {name: logistic, samples: 1000}, rate: {base: 0.01, scaling: linear}}\n";
  const ScenarioResult result = run(schedule + learning).front();
  REQUIRE(result.error.empty());
  const std::vector<learning::CurvePoint> curve = unpack_curves(result.curves).at(0).curve;
  // Theta of the first phase: the interval is the first epoch at which it has changed by less than a tenth.
  std::int64_t interval = 0;
  for (std::size_t n = 2; n < curve.size() && interval == 0; ++n)
    if (std::abs(curve[n].theta - curve[n - 1].theta) < 0.1 * std::abs(curve[n - 1].theta))
      interval = static_cast<std::int64_t>(n);
  REQUIRE(interval > 0);
  std::int64_t first_phase = 0;
  for (const learning::CurvePoint& point : curve) first_phase += point.phase == 0 && point.epoch > 0 ? 1 : 0;
  CHECK(first_phase == interval);
  CHECK(curve.back().phase == 2);
  CHECK(curve.back().rate == Approx(0.04));
  // Timing follows: the same as with that interval given.
  const ScenarioResult given =
      run("schedule: {rule: doubling, from: 8, to: 32, every: " + std::to_string(interval) + ", epochs: 30}\n").front();
  CHECK(result.total_s == Approx(given.total_s).epsilon(1e-9));
}

}  // namespace epocast::batch_schedule_test
