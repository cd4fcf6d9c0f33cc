// ZeRO under schedules that never end a step: what is gathered belongs to a later step than the next one.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/run_study.hpp"

namespace epocast::stale_sharding_test {

namespace {

/// Four stages of equal blocks, twice, over links that cost next to nothing; no stages share a table, whose sum would
/// make them wait for each other.
ScenarioResult run(const std::string& schedule, const std::string& synchronisation) {
  return testing::run_study(
      "study: stale\nplatform: dgx_a100\nworkers: 8\nbatch: {per_replica: 128}\ndataset: {samples: 20000}\n"
      "model: {name: llama, layers: 8, hidden: 512, inner: 1024, heads: 8, kv_heads: 8, sequence: 512, "
      "vocabulary: 512}\nstack: ideal\nnetwork: {efficiency: 1000}\noptimizer: adam\n"
      "strategy: {mesh: {pipeline: 4, data: 2}, schedule: " +
      schedule + ", synchronisation: " + synchronisation + "}\n");
}

}  // namespace

TEST_CASE("sharded pipelines that never end a step are as fast as with all-reduce", "[pipeline][composition]") {
  for (const std::string schedule : {"pipedream", "{name: threaded, in_flight: 4}", "{name: 2bw, micro_batches: 8}"}) {
    const double all_reduce = run(schedule, "all_reduce").iteration_s;
    for (const std::string stage : {"1", "2", "3"}) {
      INFO(schedule << ", stage " << stage);
      CHECK(run(schedule, "{name: sharded, stage: " + stage + "}").iteration_s ==
            Approx(all_reduce).epsilon(stage == "3" ? 0.15 : 0.05));
    }
  }
}

}  // namespace epocast::stale_sharding_test
