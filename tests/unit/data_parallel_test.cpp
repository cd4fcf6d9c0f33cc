// Synchronous data parallelism on two workers and two layers, worked out by hand. All times below are in ms.
#include "tests/support/hand_timeline.hpp"

using namespace epocast;
using testing::check;
using testing::kMs;
using testing::two_layers;

TEST_CASE("overlap per layer: the big layer's all-reduce hides behind the small one's backward", "[data_parallel]") {
  check({"data_parallel",
         "{granularity: layer}",
         113,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B", 60, 82},    // 2 + 20, while backward A runs
          {"all-reduce A", 100, 112},  // 2 + 10
          {"update B", 100, 102},      // its gradient came long ago
          {"update A", 112, 113}}});
}

TEST_CASE("without overlap all-reduces queue up after the backward pass", "[data_parallel]") {
  check({"data_parallel",
         "{granularity: layer, overlap: false}",
         135,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B", 100, 122},
          {"all-reduce A", 122, 134},
          {"update B", 122, 124},
          {"update A", 134, 135}}});
}

TEST_CASE("fused: one all-reduce for the whole model", "[data_parallel]") {
  for (const char* overlap : {"true", "false"})  // the last gradient comes last either way
    check({"data_parallel",
           std::string("{granularity: model, overlap: ") + overlap + "}",
           135,
           {{"forward A", 0, 10},
            {"forward B", 10, 30},
            {"backward B", 30, 60},
            {"backward A", 60, 100},
            {"all-reduce B..A", 100, 132},  // 2 + 30
            {"update B", 132, 134},
            {"update A", 134, 135}}});
}

TEST_CASE("per tensor: the queue is busy in the order in which gradients come", "[data_parallel]") {
  check({"data_parallel",
         "{granularity: tensor}",
         115,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B.0", 60, 77},
          {"all-reduce B.1", 77, 84},
          {"all-reduce A.0", 100, 108},
          {"all-reduce A.1", 108, 114},
          {"update B", 100, 102},
          {"update A", 114, 115}}});
}

TEST_CASE("buckets close when they are full, across layers", "[data_parallel]") {
  // 15 MB: tensor B.0 fills the first bucket; B.1, A.0 and A.1 (5 + 6 + 4 MB) the second, which waits for backward A.
  // The update of B needs both.
  check({"data_parallel",
         "{granularity: bucket, bucket: 15 MB}",
         120,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B", 60, 77},
          {"all-reduce B..A", 100, 117},
          {"update B", 117, 119},
          {"update A", 119, 120}}});
}

TEST_CASE("one worker has nobody to reduce with", "[data_parallel]") {
  const testing::Star star(2, 1e9, 1 * kMs);
  const ConfigNode node = ConfigNode::load_text("{}", "options");
  const auto strategy = builtin_strategies().make("data_parallel", node, node);
  const TrainingStep step = strategy->compile({star.cluster(), {0}, 1, two_layers, {}});
  const ExecutionResult result = testing::simulate(star.cluster(), step.graph, {.iterations = 20});
  CHECK(result.iteration == Approx(103 * kMs).margin(1e-9));
  CHECK(result.metrics.bytes == 0);
}
