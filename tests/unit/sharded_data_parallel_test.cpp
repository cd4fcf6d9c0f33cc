// Sharded data parallelism on two workers and two layers, worked out by hand. All times are in ms. Half an all-reduce
// of n MB between two ranks takes 1 + n/2: reduce-scatter and all-gather of A (10 MB) take 6, of B (20 MB) 11. Each
// worker updates half: A 0.5, B 1, so that it computes 101.5.
#include <algorithm>
#include <utility>

#include "strategies/step/piece.hpp"
#include "tests/support/hand_timeline.hpp"

namespace epocast::sharded_data_parallel_test {

using testing::check;

TEST_CASE("stages 1 and 2: updated parameters are gathered in the order of the next forward pass", "[sharded]") {
  // From the second iteration on forward A starts 1 before the iteration's date, and forward B waits for all-gather B:
  // 11 + 20 + 30 + 40 + 6 + 0.5 + 6 around all-gather B, forward B, backward, reduce-scatter A, update A, all-gather A.
  for (const char* stage : {"1", "2"})
    check({"sharded_data_parallel",
           std::string("{unit: 1 B, stage: ") + stage + "}",
           113.5,
           {{"forward A", -1, 9},
            {"forward B", 10, 30},
            {"backward B", 30, 60},
            {"backward A", 60, 100},
            {"reduce-scatter B", 60, 71},
            {"reduce-scatter A", 100, 106},
            {"update B", 100, 101},
            {"update A", 106, 106.5},
            {"all-gather A", 106.5, 112.5},
            {"all-gather B", 112.5, 123.5}},
           101.5,
           60,
           {1, 7, 19}});
}

TEST_CASE("without overlap gradients wait for the end of the backward pass, and updates for all of them", "[sharded]") {
  check({"sharded_data_parallel",
         "{unit: 1 B, stage: 1, overlap: false, overlap_gathers: false}",
         135.5,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"reduce-scatter B", 100, 111},
          {"reduce-scatter A", 111, 117},
          {"update B", 117, 118},
          {"update A", 118, 118.5},
          {"all-gather A", 118.5, 124.5},
          {"all-gather B", 124.5, 135.5}},
         101.5,
         60});
}

TEST_CASE("without overlap of gathers a step begins when all parameters are there", "[sharded]") {
  check({"sharded_data_parallel",
         "{unit: 1 B, stage: 2, overlap_gathers: false}",
         123.5,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"reduce-scatter B", 60, 71},
          {"reduce-scatter A", 100, 106},
          {"update B", 100, 101},
          {"update A", 106, 106.5},
          {"all-gather A", 106.5, 112.5},
          {"all-gather B", 112.5, 123.5}},
         101.5,
         60});
}

TEST_CASE("units are copies of what the network repeats, and what is between", "[sharded]") {
  WorkloadTrace trace;
  for (const char* name : {"words", "layer.0.norm", "layer.0.out", "layer.1.norm", "layer.1.out", "norm", "head"}) {
    LayerTrace& layer = trace.layers.emplace_back();
    layer.name = name;
    layer.parameters = Bytes(1e6);
    layer.gradients = {{"weight", Bytes(1e6)}};
  }
  std::vector<std::string> names;
  for (const ParameterPiece& unit : pieces_of_blocks(trace)) names.push_back(unit.name);
  CHECK(names ==
        std::vector<std::string>{"words", "layer.0.norm..layer.0.out", "layer.1.norm..layer.1.out", "norm..head"});
  for (LayerTrace& layer : trace.layers) std::erase(layer.name, '.');
  CHECK(pieces_of_blocks(trace).empty());
}

TEST_CASE("one unit: all parameters travel together", "[sharded]") {
  check({"sharded_data_parallel",
         "{unit: 25 MB, stage: 2}",
         133.5,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"reduce-scatter A..B", 100, 116},
          {"update A..B", 116, 117.5},
          {"all-gather A..B", 117.5, 133.5}},
         101.5});
}

TEST_CASE("stage 3 without prefetch: each unit is gathered when it is needed, twice", "[sharded]") {
  check({"sharded_data_parallel",
         "{unit: 1 B, prefetch: 0}",
         151.5,
         {{"all-gather A", 0, 6},
          {"forward A", 6, 16},
          {"all-gather B", 16, 27},
          {"forward B", 27, 47},
          {"all-gather again B", 47, 58},
          {"backward B", 58, 88},
          {"reduce-scatter B", 88, 99},
          {"all-gather again A", 99, 105},  // one communication at a time
          {"backward A", 105, 145},
          {"reduce-scatter A", 145, 151},
          {"update B", 145, 146},
          {"update A", 151, 151.5}},
         101.5,
         1.5 * 60});
}

TEST_CASE("stage 3 with prefetch: gathering hides behind the unit before", "[sharded]") {
  check({"sharded_data_parallel",
         "{unit: 1 B, prefetch: 1}",
         124.5,
         {{"all-gather A", 0, 6},
          {"all-gather B", 6, 17},
          {"forward A", 6, 16},
          {"forward B", 17, 37},
          {"all-gather again B", 37, 48},
          {"all-gather again A", 48, 54},
          {"backward B", 48, 78},
          {"backward A", 78, 118},
          {"reduce-scatter B", 78, 89},
          {"reduce-scatter A", 118, 124},
          {"update B", 118, 119},
          {"update A", 124, 124.5}},
         101.5,
         1.5 * 60});
}

TEST_CASE("stage 3 without resharding: gathered once", "[sharded]") {
  check({"sharded_data_parallel",
         "{unit: 1 B, reshard: false}",
         113.5,
         {{"all-gather A", 0, 6},
          {"all-gather B", 6, 17},
          {"forward A", 6, 16},
          {"forward B", 17, 37},
          {"backward B", 37, 67},
          {"backward A", 67, 107},
          {"reduce-scatter B", 67, 78},
          {"reduce-scatter A", 107, 113},
          {"update B", 107, 108},
          {"update A", 113, 113.5}},
         101.5});
}

TEST_CASE("stage 3: what no backward pass reads is not gathered again", "[sharded]") {
  const Cluster cluster = testing::cluster_of(2);
  const auto gathered_again = [&](std::size_t frozen) {  // so many layers, from the first on
    const TraceSource source = [frozen](std::int64_t batch) {
      WorkloadTrace trace = testing::two_layers(batch);
      for (std::size_t l = 1; l <= frozen; ++l) {
        LayerTrace& layer = trace.layers[l];
        layer.frozen = std::exchange(layer.parameters, Bytes(0));
        layer.gradients.clear();
        layer.needs_gradient = false;
        layer.times = {layer.times.forward, Seconds(0), Seconds(0), Seconds(0)};
      }
      return trace;
    };
    const ConfigNode node = ConfigNode::load_text("{unit: 1 B}", "options");
    const TrainingStep step =
        builtin_strategies().make("sharded_data_parallel", node, node)->compile({cluster, {0, 1}, 2, source, {}});
    return std::ranges::count_if(step.graph.tasks(),
                                 [](const Task& task) { return task.label.operation == "all-gather again"; });
  };
  CHECK(gathered_again(0) == 2);
  CHECK(gathered_again(1) == 1);
  CHECK(gathered_again(2) == 0);
}

TEST_CASE("memory: each stage shards one thing more", "[sharded]") {
  // 30 MB of parameters on two workers; Adam keeps two values for each. Activations: 1 MB for each of A and B (and
  // data).
  const Cluster cluster = testing::cluster_of(2);
  const auto memory = [&](const std::string& options, std::vector<DeviceId> workers) {
    const ConfigNode node = ConfigNode::load_text(options, "options");
    const auto batch = static_cast<std::int64_t>(workers.size());
    return builtin_strategies()
        .make("sharded_data_parallel", node, node)
        ->compile({cluster, std::move(workers), batch, testing::two_layers, {}, Optimizer::adam})
        .memory.front()
        .use;
  };
  const MemoryUse one = memory("{stage: 1}", {0, 1});
  CHECK(one.parameters.value == Approx(30e6));
  CHECK(one.gradients.value == Approx(30e6));
  CHECK(one.optimizer_state.value == Approx(30e6));
  const MemoryUse two = memory("{stage: 2, unit: 1 B}", {0, 1});
  CHECK(two.parameters.value == Approx(30e6));
  CHECK(two.gradients.value == Approx(15e6 + 20e6));  // its half, and those of the largest unit on their way
  CHECK(two.optimizer_state.value == Approx(30e6));
  const MemoryUse three = memory("{stage: 3, unit: 1 B, prefetch: 0}", {0, 1});
  CHECK(three.parameters.value == Approx(15e6 + 20e6));
  CHECK(memory("{stage: 3, unit: 1 B, prefetch: 1}", {0, 1}).parameters.value == Approx(15e6 + 30e6));
  CHECK(memory("{stage: 3, unit: 1 B, prefetch: 0, reshard: false}", {0, 1}).parameters.value == Approx(15e6 + 30e6));
  const MemoryUse alone = memory("{stage: 3}", {0});
  CHECK(alone.parameters.value == Approx(30e6));
  CHECK(alone.optimizer_state.value == Approx(60e6));
}

}  // namespace epocast::sharded_data_parallel_test
