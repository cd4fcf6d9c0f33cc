// Epochs to a target as a given.
#include <catch2/catch.hpp>

#include "experiments/learning/convergence.hpp"
#include "experiments/run_study.hpp"

namespace epocast::convergence_test {

namespace {

ScenarioResult run(const std::string& more) {
  const Study study = parse_study(
      "study: target\nplatform: ideal_star_1024\nmodel: mlp_mnist\nworkers: 4\ndataset: {samples: 4000}\n" + more,
      "study");
  return run_study(study.scenarios, builtin_registries(), {}, 1, {}).front();
}

}  // namespace

TEST_CASE("epochs grow with the batch and with staleness", "[convergence]") {
  // 60 epochs with 100 samples, critical batch 300: 60 / (1 + 1/3) = 45 with few, 90 with 300, 45 (1 + 3) with 900.
  const Convergence rule{.epochs = 60, .batch = 100, .critical_batch = 300, .staleness_penalty = 0.5};
  CHECK(rule.epochs_with(100, 0) == Approx(60));
  CHECK(rule.epochs_with(300, 0) == Approx(90));
  CHECK(rule.epochs_with(900, 0) == Approx(180));
  CHECK(rule.epochs_with(300, 3) == Approx(225));
  // Without a critical batch every batch takes as many epochs.
  CHECK(Convergence{.epochs = 60, .batch = 100}.epochs_with(900, 3) == Approx(60));
}

TEST_CASE("a study's time to a target is that of its epochs, and off unless asked for", "[convergence]") {
  const std::string batch = "batch: {per_worker: 10}\n";
  const ScenarioResult without = run(batch);
  CHECK_FALSE(without.time_to_target_s);
  const ScenarioResult with = run(batch + "learning: {given: {epochs: 20, batch: 20, critical_batch: 20}}\n");
  REQUIRE(with.error.empty());
  CHECK(with.epoch_s == without.epoch_s);
  CHECK(with.epochs_to_target == Approx(30));  // 20 (1 + 40/20) / (1 + 20/20)
  CHECK(*with.time_to_target_s == Approx(30 * with.epoch_s));
  const ScenarioResult stale = run(batch +
                                   "strategy: {name: parameter_server, mode: async}\n"
                                   "learning: {given: {epochs: 20, batch: 40, staleness_penalty: 0.1}}\n");
  REQUIRE(stale.mean_staleness);
  CHECK(*stale.mean_staleness > 1);
  CHECK(*stale.epochs_to_target == Approx(20 * (1 + 0.1 * *stale.mean_staleness)));
}

}  // namespace epocast::convergence_test
