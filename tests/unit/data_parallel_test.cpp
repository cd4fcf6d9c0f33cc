// Synchronous data parallelism on two workers and two layers, worked out by hand. All times below are in ms.
#include "tests/support/hand_timeline.hpp"

namespace epocast::data_parallel_test {

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

TEST_CASE("without overlap nothing is hidden: 103 of computation and 34 of communication", "[data_parallel]") {
  check({"data_parallel",
         "{granularity: layer, overlap: false}",
         137,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B", 100, 122},
          {"all-reduce A", 122, 134},
          {"update B", 134, 136},
          {"update A", 136, 137}}});
}

TEST_CASE("updates may wait for all gradients beside all-reduces that overlap", "[data_parallel]") {
  check({"data_parallel",
         "{granularity: layer, update: after_all}",
         115,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B", 60, 82},
          {"all-reduce A", 100, 112},
          {"update B", 112, 114},
          {"update A", 114, 115}}});
}

TEST_CASE("updates piece by piece hide all-reduces that follow the backward pass", "[data_parallel]") {
  check({"data_parallel",
         "{granularity: layer, overlap: false, update: after_backward}",
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

TEST_CASE("per tensor: the queue is busy in the order in which gradients come, a layer's bias before its weight",
          "[data_parallel]") {
  check({"data_parallel",
         "{granularity: tensor}",
         115,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B.1", 60, 67},
          {"all-reduce B.0", 67, 84},
          {"all-reduce A.1", 100, 106},
          {"all-reduce A.0", 106, 114},
          {"update B", 100, 102},
          {"update A", 114, 115}}});
}

TEST_CASE("buckets close when they are full, across layers", "[data_parallel]") {
  // 21 MB: biases before weights, B.1, B.0 and A.1 (5 + 15 + 4 MB) fill the first bucket, which waits for backward A;
  // A.0 (6 MB) is left for the second. Update B needs the first, update A both.
  check({"data_parallel",
         "{granularity: bucket, bucket: 21 MB}",
         135,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B..A", 100, 126},
          {"all-reduce A", 126, 134},
          {"update B", 126, 128},
          {"update A", 134, 135}}});
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

}  // namespace epocast::data_parallel_test
