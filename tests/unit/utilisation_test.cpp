// Model FLOP utilisation over phases that have different workers.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/run_study.hpp"

namespace epocast::utilisation_test {

namespace {

ScenarioResult run(const std::string& schedule) {
  return testing::run_study(
      "study: elastic\nplatform: skylake_10gbe\nworkers: 8\nmodel: vgg16\ndataset: {samples: 5120}\n"
      "batch: {per_worker: 64}\nstrategy: data_parallel\nstack: ideal\n"
      "compute: {cost_model: roofline, efficiency: 1}\nschedule: " +
      schedule + "\n");
}

}  // namespace

TEST_CASE("utilisation is the work of all phases over what their devices could do", "[utilisation]") {
  const ScenarioResult many = run("[{epochs: 2, workers: 8}]"), one = run("[{epochs: 1, workers: 1}]"),
                       both = run("[{epochs: 2, workers: 8}, {epochs: 1, workers: 1}]");
  // 2 x 5120 / 512 steps of eight devices, then 5120 / 64 of one.
  const double with_many = 8 * 20 * many.iteration_s, with_one = 80 * one.iteration_s;  // device seconds
  CHECK(*many.mfu <= 1);
  CHECK(*one.mfu <= 1);
  CHECK(*both.mfu == Approx((*many.mfu * with_many + *one.mfu * with_one) / (with_many + with_one)).epsilon(1e-9));
  CHECK(*both.hfu == *both.mfu);
}

}  // namespace epocast::utilisation_test
