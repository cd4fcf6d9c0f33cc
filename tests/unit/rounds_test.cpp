// Epochs that end within a round of steps, after which workers would have exchanged what they have.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/plan/bounds.hpp"
#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/run_study.hpp"

namespace epocast::rounds_test {

namespace {

/// 40 steps.
std::string study_of(const std::string& strategy) {
  return "study: rounds\nplatform: dgx_a100\nmodel: mlp_mnist\ndataset: {samples: 5120}\nbatch: {per_worker: 32}\n"
         "workers: 4\nstack: ideal\nprice: {device_hour: 3600 $}\npower: {device: {idle: 1 W, busy: 3 W}}\nstrategy: " +
         strategy + "\n";
}

ScenarioResult run(const std::string& strategy) { return testing::run_study(study_of(strategy)); }

}  // namespace

TEST_CASE("steps are counted and paid one by one, however many a round has", "[rounds]") {
  // Rounds follow each other without a gap: 40 steps take 40 times what one does. Where workers do not wait for each
  // other, the first rounds differ a little.
  for (const std::string strategy :
       {"{name: local_sgd, period: 1}", "{name: local_sgd, period: 8}", "{name: local_sgd, period: 30}",
        "{name: local_sgd, period: 1000}", "{name: gossip, period: 100}", "{name: downpour, period: 100}",
        "{name: easgd, period: 30}"}) {
    INFO(strategy);
    const ScenarioResult result = run(strategy);
    const bool in_step = strategy.find("local_sgd") != std::string::npos;
    CHECK(result.total_s == Approx(40 * result.iteration_s).epsilon(in_step ? 1e-9 : 0.05));
    CHECK(result.epoch_s == Approx(result.total_s).epsilon(1e-12));
    CHECK(result.iterations_simulated <= 40);
    if (!in_step) continue;                                           // and with servers
    CHECK(*result.cost == Approx(4 * result.total_s).epsilon(1e-9));  // 1 $ per second and device
    const double busy = result.compute_s / result.iteration_s;
    CHECK(*result.energy_j == Approx(4 * result.total_s * (1 + 2 * busy)).epsilon(1e-9));
  }
  CHECK(run("{name: local_sgd, period: 1000}").total_s < run("{name: local_sgd, period: 1}").total_s);
}

TEST_CASE("what a plan knows before it simulates is less than what a round that is cut short takes", "[rounds]") {
  const std::string strategy = "{name: local_sgd, period: 1000}";
  const Study study = parse_study(study_of(strategy), "study.yaml");
  const double least =
      cheap_bounds(read_scenario(study.scenarios.front(), builtin_registries()), nullptr).least.total_s;
  CHECK(least > 0);
  CHECK(least <= run(strategy).total_s);
}

}  // namespace epocast::rounds_test
