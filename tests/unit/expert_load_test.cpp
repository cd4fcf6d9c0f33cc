// What devices with experts hold when these are asked more than the mean.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::expert_load_test {

namespace {

Study study_of(const std::string& body) {
  return parse_study(
      "study: load\nplatform: ideal_star_1024\nmodel: {name: mixtral, layers: 2, hidden: 256, inner: 512, heads: 4, "
      "kv_heads: 4, experts: 8, chosen: 2, sequence: 256, vocabulary: 256}\nstack: ideal\nworkers: 4\n"
      "batch: {per_worker: 4}\nmemory: {workspace: none}\ndataset: {samples: 2000}\n"
      "strategy: {mesh: {expert: 4}, body: {name: experts, " +
          body + "}}\n",
      "study.yaml");
}

double memory(const std::string& body) {
  const Study study = study_of(body);
  return *deserialize(testing::in_child([&] {
            return serialize(run_scenario(study.scenarios.front(), builtin_registries(), {}));
          })).peak_memory_bytes;
}

}  // namespace

TEST_CASE("what experts keep is in proportion to their load", "[experts]") {
  const double one = memory("imbalance: 1"), two = memory("imbalance: 2"), three = memory("imbalance: 3");
  CHECK(two > one);
  CHECK(three - two == Approx(two - one).epsilon(1e-6));
  CHECK(memory("capacity: 2") == Approx(two).epsilon(1e-9));
}

TEST_CASE("the busiest device has all positions at the most", "[experts]") {
  const Study study = study_of("imbalance: 4.5");
  const std::string said = testing::message([&] {
    const ScenarioSetup setup = read_scenario(study.scenarios.front(), builtin_registries());
    setup.compile(setup.context(setup.phases.front()));
  });
  CHECK_THAT(said, Catch::Contains("the busiest of 4 devices can have: 4 times the mean"));
}

}  // namespace epocast::expert_load_test
