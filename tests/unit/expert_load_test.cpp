// What devices with experts hold when these are asked more than the mean.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/run_study.hpp"

namespace epocast::expert_load_test {

namespace {

std::string study_of(const std::string& body) {
  return "study: load\nplatform: ideal_star_1024\nmodel: {name: mixtral, layers: 2, hidden: 256, inner: 512, heads: 4, "
         "kv_heads: 4, experts: 8, chosen: 2, sequence: 256, vocabulary: 256}\nstack: ideal\nworkers: 4\n"
         "batch: {per_worker: 4}\nmemory: {workspace: none}\ndataset: {samples: 2000}\n"
         "strategy: {mesh: {expert: 4}, body: {name: experts, " +
         body + "}}\n";
}

double memory(const std::string& body) { return *testing::run_study(study_of(body)).peak_memory_bytes; }

}  // namespace

TEST_CASE("what experts keep is in proportion to their load", "[experts]") {
  const double one = memory("imbalance: 1"), two = memory("imbalance: 2"), three = memory("imbalance: 3");
  CHECK(two > one);
  CHECK(three - two == Approx(two - one).epsilon(1e-6));
  CHECK(memory("capacity: 2") == Approx(two).epsilon(1e-9));
}

TEST_CASE("the busiest device has all positions at the most", "[experts]") {
  const Study study = parse_study(study_of("imbalance: 4.5"), "study.yaml");
  const std::string said = testing::message([&] {
    const ScenarioSetup setup = read_scenario(study.scenarios.front(), builtin_registries());
    setup.compile(setup.context(setup.phases.front()));
  });
  CHECK_THAT(said, Catch::Contains("the busiest of 4 devices can have: 4 times the mean"));
}

}  // namespace epocast::expert_load_test
