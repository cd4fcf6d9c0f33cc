// Studies with a learning block, as `run` and `learn` see them.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/learning/curves.hpp"
#include "experiments/run_study.hpp"

namespace epocast::learning_run_test {

namespace {

constexpr const char* kStudy = R"(
study: learn
platform: ideal_star_1024
model: mlp_mnist
workers: 4
dataset: {samples: 1000, epochs: 3}
batch: {per_worker: 10}
)";

ScenarioResult run(const std::string& more) {
  const Study study = parse_study(kStudy + more, "study");
  return run_study(study.scenarios, builtin_registries(), {}, 1, {}).front();
}

const std::string kLogistic = "learning: {problem: {name: logistic, samples: 1000}, rate: 0.1";

}  // namespace

TEST_CASE("times are the same with and without learning", "[learning]") {
  for (const std::string more : {"", "strategy: {name: parameter_server, mode: async}\n",
                                 "strategy: {name: downpour, period: 3}\nnoise: {compute_cv: 0.3, seeds: 2}\n",
                                 "strategy: local_sgd\nstragglers: [{worker: 1, slowdown: 2}]\n"}) {
    const ScenarioResult without = run(more), with = run(more + kLogistic + "}\n");
    REQUIRE(with.error.empty());
    CHECK(with.loss.has_value());
    nlohmann::ordered_json a = columns_of(without), b = columns_of(with);
    for (const char* learned : {"loss", "accuracy", "time_to_target_s", "epochs_to_target"}) {
      a.erase(learned);
      b.erase(learned);
    }
    CHECK(a == b);
  }
}

TEST_CASE("the curve ends when the run does", "[learning]") {
  const ScenarioResult result =
      run("strategy: {name: parameter_server, mode: async, granularity: model}\n" + kLogistic + "}\n");
  const std::vector<learning::LearningOutcome> seeds = unpack_curves(result.curves);
  REQUIRE(seeds.size() == 1);
  // 25 steps an epoch of the data set and of the problem alike. The last update, and no more.
  CHECK(seeds[0].curve.back().epoch == Approx(3));
  CHECK(seeds[0].curve.back().time == Approx(result.total_s).epsilon(0.02));
  CHECK(seeds[0].curve.back().bytes == Approx(3 * result.comm_bytes_per_epoch));
  CHECK(seeds[0].curve.size() == 4);
}

TEST_CASE("a target that is not reached, and one that is", "[learning]") {
  const ScenarioResult missed = run(kLogistic + ", target: {loss: 1e-9}, seeds: 2}\n");
  CHECK(missed.exit_code == 0);
  CHECK_FALSE(missed.time_to_target_s);
  REQUIRE(missed.warnings.size() == 1);
  CHECK_THAT(missed.warnings[0], Catch::Contains("not reached with 2 of 2 seeds") && Catch::Contains("the best"));
  const ScenarioResult reached = run(kLogistic + ", target: {loss: 0.4, stop: true}, seeds: 2}\n");
  REQUIRE(reached.time_to_target_s);
  CHECK(*reached.time_to_target_s > 0);
  CHECK(*reached.time_to_target_s < reached.total_s);
  CHECK(*reached.loss <= 0.4);
}

TEST_CASE("training ends after a time, or after so many samples", "[learning]") {
  const std::vector<learning::CurvePoint> whole =
      unpack_curves(run(kLogistic + "}\n").curves).at(0).curve;  // 3 epochs of 1000
  const auto last = [](const std::string& until) {
    return unpack_curves(run(kLogistic + ", until: {" + until + "}}\n").curves).at(0).curve.back();
  };
  // 10 samples a gradient: 1500 are reached by the second worker's in the 38th step, and the other two begin none.
  CHECK(last("samples: 1500").epoch == Approx(1.5));
  CHECK(last("samples: 1e9").epoch == Approx(3));
  const double half = whole.back().time / 2;
  const learning::CurvePoint stopped = last("time: " + std::to_string(half) + " s");
  CHECK(stopped.time <= half);
  CHECK(stopped.epoch == Approx(1.5).margin(0.1));
  CHECK(last("time: " + std::to_string(half) + " s, samples: 100").epoch == Approx(0.1));
}

TEST_CASE("divergence is named, and what was learned until then is kept", "[learning]") {
  const ScenarioResult result =
      run("strategy: {name: parameter_server, mode: async}\n"
          "learning: {problem: {name: quadratic, noise: 0}, rate: 1.9, epochs: 100}\n");
  CHECK(result.exit_code == 0);
  CHECK_FALSE(result.loss);
  std::string said;
  for (const std::string& warning : result.warnings) said += warning;
  CHECK_THAT(said, Catch::Contains("parameter_server diverged") && Catch::Contains("phase 1") &&
                       Catch::Contains("use a lower rate"));
  CHECK(unpack_curves(result.curves).at(0).curve.size() > 1);
}

TEST_CASE("a schedule's phases follow each other", "[learning]") {
  const ScenarioResult result =
      run("schedule: [{epochs: 2, batch.global: 20, workers: 2}, {epochs: 3, batch.global: 40}, {epochs: 1, "
          "batch.global: 8, workers: 8}]\n" +
          kLogistic + "}\n");
  REQUIRE(result.error.empty());
  const learning::LearningOutcome outcome = unpack_curves(result.curves).at(0);
  CHECK(outcome.curve.back().epoch == Approx(6));
  CHECK(outcome.curve.back().phase == 2);
  CHECK(outcome.curve.back().loss < outcome.curve.front().loss);
  for (std::size_t n = 1; n < outcome.curve.size(); ++n) CHECK(outcome.curve[n].time > outcome.curve[n - 1].time);
}

TEST_CASE("workers of unequal speed take the steps that equal ones do, and the last point has them all", "[learning]") {
  // Without noise of gradients each of 75 steps takes a hundredth off every parameter, whoever is slow.
  const std::string quadratic =
      "learning: {problem: {name: quadratic, spectrum: [1, 1, 1, 1], noise: 0, samples: 1000}, rate: 0.01}\n";
  for (const std::string unequal :
       {"", "stragglers: [{worker: 0, slowdown: 3}]\n", "stragglers: [{worker: 3, slowdown: 100}]\n",
        "noise: {compute_cv: 1, per: step}\n", "noise: {compute_cv: 1}\n"})
    for (const std::string strategy : {"data_parallel", "ddp", "horovod", "zero1", "fsdp", "parameter_server",
                                       "{name: parameter_server, granularity: model}", "{name: local_sgd, period: 1}",
                                       "{name: model_averaging, period: 1}"}) {
      INFO(strategy << ", " << unequal);
      const ScenarioResult result = run("strategy: " + strategy + "\n" + unequal + quadratic);
      REQUIRE(result.error.empty());
      const std::vector<learning::CurvePoint> curve = unpack_curves(result.curves).at(0).curve;
      CHECK(curve.back().loss == Approx(curve.front().loss * std::pow(0.99, 2 * 75)));
    }
}

TEST_CASE("what disturbs from a date on leaves phases before it as they are", "[learning]") {
  // The data set has a hundred times the problem's samples: on the problem's clock all ends long before.
  const std::string phases =
      "schedule: [{epochs: 1, batch.global: 40}, {epochs: 1, batch.global: 40}]\n"
      "learning: {problem: {name: quadratic, spectrum: [1], noise: 0, samples: 1000}, rate: 0.01}\n";
  const auto ends = [](const ScenarioResult& result) { return unpack_curves(result.curves).at(0).curve.back().time; };
  const auto with = [&](const std::string& more) {
    const Study study = parse_study(kStudy + phases + more, "study", {{"dataset.samples", "100000"}});
    return run_study(study.scenarios, builtin_registries(), {}, 1, {}).front();
  };
  const ScenarioResult plain = with("");
  const double later = ends(plain) * 10;
  CHECK(later < plain.total_s / 2);
  CHECK(ends(with(fmt::format("stragglers: [{{worker: 0, slowdown: 100, from: {} s}}]\n", later))) ==
        Approx(ends(plain)));
  CHECK(ends(with(fmt::format("stragglers: [{{worker: 0, slowdown: 100, from: {} s}}]\n", ends(plain) * 0.6))) >
        2 * ends(plain));
}

TEST_CASE("a rate that warms up to nothing is refused", "[learning]") {
  for (const char* rate : {"{base: 0.1, warmup: 5}", "{base: 0.1, batch: 8, scaling: none}"})
    CHECK_THAT(run(std::string("learning: {problem: {name: logistic, samples: 1000}, rate: ") + rate + "}\n").error,
               Catch::Contains("does nothing without scaling"));
}

TEST_CASE("curves survive the way from the simulating process", "[learning]") {
  learning::LearningOutcome outcome;
  outcome.curve.push_back({1, 2, 3, std::numeric_limits<double>::quiet_NaN(), std::nullopt, 5, 6, 7});
  outcome.curve.push_back({1, 2, 3, 4, 0.5, 5, 6, 7});
  outcome.diverged = outcome.curve.front();
  const learning::LearningOutcome back = unpack_curves(pack_curves({outcome})).at(0);
  CHECK(std::isnan(back.curve[0].loss));
  CHECK_FALSE(back.curve[0].accuracy);
  CHECK(back.curve[1].accuracy == 0.5);
  CHECK(back.curve[1].phase == 7);
  CHECK(back.diverged);
  CHECK_FALSE(back.reached);
}

}  // namespace epocast::learning_run_test
