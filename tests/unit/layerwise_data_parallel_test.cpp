// Communication layer by layer on two workers, worked out by hand. Between 2 ranks with 1 ms of latency and 1 GB/s, a
// ring all-reduce of n MB takes 2 + n ms; a reduce-scatter, all-gather or all-to-all 1 + n/2 ms. Sharded updates take
// half: A 0.5, B 1. All times below are in ms.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/support/hand_timeline.hpp"

namespace epocast::layerwise_data_parallel_test {

using testing::check;
using testing::two_layers;

namespace {

const std::string kStrategy = "layerwise_data_parallel";

/// Adding two halves of A's 10 MB: reads 10 MB and writes 5 MB at 500 GB/s.
constexpr double kSum = 0.03;

/// Forward 10 + 20, input's gradient of B 15, half of its parameters' for both samples 15, backward A 40, half of the
/// updates 1.5.
constexpr double kPcnnCompute = 101.5 + kSum;
/// What each of two workers sends of B: 2 of the activations' 4, its errors of 2, half of the parameters, 10; of A
/// twice half of the parameters, 10.
constexpr double kPcnnMegabytes = 2 * (2 + 2 + 10 + 10);

}  // namespace

TEST_CASE("all_reduce without overlap: nothing is hidden, not behind updates either", "[layerwise]") {
  check({.strategy = kStrategy,
         .options = "{overlap: none}",
         .period = 137,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce B", 100, 122},  // 2 + 20
                  {"all-reduce A", 122, 134},  // 2 + 10
                  {"update B", 134, 136},
                  {"update A", 136, 137}}});
}

TEST_CASE("all_reduce is data_parallel with a layer per all-reduce", "[layerwise]") {
  // Of a network without normalisations: the same graph, whatever may be hidden.
  const auto tasks = [](const std::string& strategy, const std::string& options) {
    const ConfigNode node = ConfigNode::load_text(options, "options");
    const Cluster cluster = testing::cluster_of(2);
    const TrainingStep step =
        builtin_strategies().make(strategy, node, node)->compile({cluster, {0, 1}, 2, two_layers, {}});
    std::string text;
    for (const Task& task : step.graph.tasks()) text += task.label.text() + "\n";
    for (const Edge& e : step.graph.edges()) text += fmt::format("{} {} {}\n", int(e.before), int(e.after), e.lag);
    return text;
  };
  for (const auto& [overlap, same] : {std::pair{"none", "overlap: false"},
                                      {"backward", "update: after_backward"},
                                      {"next_forward", "update: before_forward"}})
    CHECK(tasks(kStrategy, fmt::format("{{overlap: {}}}", overlap)) ==
          tasks("data_parallel", fmt::format("{{granularity: layer, {}}}", same)));
}

TEST_CASE("all_reduce behind the backward pass", "[layerwise]") {
  check({.strategy = kStrategy,
         .options = "{overlap: backward}",
         .period = 113,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce B", 60, 82},
                  {"all-reduce A", 100, 112},
                  {"update B", 100, 102},
                  {"update A", 112, 113}}});
}

TEST_CASE("all_reduce into the next forward pass: each layer is updated just before it is needed", "[layerwise]") {
  // First posted, first served: the first layer's gradient comes last and is needed first.
  check({.strategy = kStrategy,
         .options = "{overlap: next_forward}",
         .period = 115,
         .rows = {{"update A", 0, 1},
                  {"forward A", 1, 11},
                  {"update B", 11, 13},
                  {"forward B", 13, 33},
                  {"backward B", 33, 63},
                  {"backward A", 63, 103},
                  {"all-reduce B", 63, 85},
                  {"all-reduce A", 103, 115}}});
}

TEST_CASE("reduce_scatter, sharded update, all_gather without overlap", "[layerwise]") {
  check({.strategy = kStrategy,
         .options = "{gradients: reduce_scatter, overlap: none}",
         .period = 135.5,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"reduce-scatter B", 60, 71},  // 1 + 20/2
                  {"update B", 71, 72},
                  {"all-gather parameters B", 72, 83},
                  {"backward A", 83, 123},
                  {"reduce-scatter A", 123, 129},  // 1 + 10/2
                  {"update A", 129, 129.5},
                  {"all-gather parameters A", 129.5, 135.5}},
         .compute = 101.5});
}

TEST_CASE("reduce_scatter behind the backward pass: the next forward pass waits for all parameters", "[layerwise]") {
  check({.strategy = kStrategy,
         .options = "{gradients: reduce_scatter, overlap: backward}",
         .period = 123.5,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"reduce-scatter B", 60, 71},
                  {"reduce-scatter A", 100, 106},
                  {"update A", 106, 106.5},  // in forward order
                  {"all-gather parameters A", 106.5, 112.5},
                  {"update B", 106.5, 107.5},
                  {"all-gather parameters B", 112.5, 123.5}},
         .compute = 101.5});
}

TEST_CASE("reduce_scatter into the next forward pass: B's parameters travel while A computes", "[layerwise]") {
  // From the second iteration on forward A starts when A's parameters are there, and B's come 11 later.
  check({.strategy = kStrategy,
         .options = "{gradients: reduce_scatter, overlap: next_forward}",
         .period = 113.5,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 11, 31},
                  {"backward B", 31, 61},
                  {"backward A", 61, 101},
                  {"reduce-scatter B", 61, 72},
                  {"reduce-scatter A", 101, 107},
                  {"update A", 107, 107.5},
                  {"all-gather parameters A", 107.5, 113.5},
                  {"update B", 107.5, 108.5},
                  {"all-gather parameters B", 113.5, 124.5}},
         .compute = 101.5,
         .iterations = {1, 7, 19},
         .first = -1});  // the first iteration has B's parameters at once, and ends 1 earlier
}

TEST_CASE("all_to_all without overlap: as reduce_scatter, but the worker adds", "[layerwise]") {
  // Adding two halves of B's 20 MB: reads 20 MB and writes 10 MB at 500 GB/s.
  const double sum_b = 2 * kSum;
  check({.strategy = kStrategy,
         .options = "{gradients: all_to_all, overlap: none}",
         .period = 135.5 + sum_b + kSum,
         .rows = {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"all-to-all gradients B", 60, 71},  // 1 + 20/2
                  {"sum B", 71, 71 + sum_b},
                  {"update B", 71 + sum_b, 72 + sum_b},
                  {"all-gather parameters B", 72 + sum_b, 83 + sum_b},
                  {"backward A", 83 + sum_b, 123 + sum_b},
                  {"all-to-all gradients A", 123 + sum_b, 129 + sum_b},
                  {"sum A", 129 + sum_b, 129 + sum_b + kSum},
                  {"update A", 129 + sum_b + kSum, 129.5 + sum_b + kSum},
                  {"all-gather parameters A", 129.5 + sum_b + kSum, 135.5 + sum_b + kSum}},
         .compute = 101.5 + sum_b + kSum});
}

TEST_CASE("pcnn without overlap: three exchanges for B, two for A", "[layerwise]") {
  check({.strategy = kStrategy,
         .options = "{gradients: pcnn, overlap: none}",
         .period = 130.5 + kSum,
         .rows = {{"forward A", 0, 10},
                  {"all-to-all activations B", 10, 13},  // 1 + 4/2
                  {"forward B", 13, 33},
                  {"all-gather errors B", 33, 36},  // 1 + 2 x 2/2
                  {"backward B", 36, 51},           // the input's gradient only
                  {"gradient B", 51, 66},           // half of the parameters' for both samples
                  {"update B", 66, 67},
                  {"all-gather parameters B", 67, 78},
                  {"backward A", 78, 118},
                  {"all-to-all gradients A", 118, 124},
                  {"sum A", 124, 124 + kSum},
                  {"update A", 124 + kSum, 124.5 + kSum},
                  {"all-gather parameters A", 124.5 + kSum, 130.5 + kSum}},
         .compute = kPcnnCompute,
         .megabytes = kPcnnMegabytes});
}

TEST_CASE("pcnn behind the backward pass", "[layerwise]") {
  check({.strategy = kStrategy,
         .options = "{gradients: pcnn, overlap: backward}",
         .period = 118.5 + kSum,
         .rows = {{"forward A", 0, 10},
                  {"all-to-all activations B", 10, 13},
                  {"forward B", 10, 30},
                  {"all-gather errors B", 30, 33},
                  {"backward B", 30, 45},
                  {"backward A", 45, 85},
                  {"all-to-all gradients A", 85, 91},
                  {"sum A", 91, 91 + kSum},
                  {"update A", 91 + kSum, 91.5 + kSum},
                  {"all-gather parameters A", 91.5 + kSum, 97.5 + kSum},
                  {"gradient B", 91.5 + kSum, 106.5 + kSum},
                  {"update B", 106.5 + kSum, 107.5 + kSum},
                  {"all-gather parameters B", 107.5 + kSum, 118.5 + kSum}},
         .compute = kPcnnCompute,
         .megabytes = kPcnnMegabytes});
}

TEST_CASE("pcnn into the next forward pass", "[layerwise]") {
  // As above, but forward A needs only A's parameters, which are there; B's come 11 after its start. They also keep the
  // activations of B waiting for 1.
  check({.strategy = kStrategy,
         .options = "{gradients: pcnn, overlap: next_forward}",
         .period = 108.5 + kSum,
         .rows = {{"forward A", 0, 10},
                  {"all-to-all activations B", 11, 14},
                  {"forward B", 11, 31},
                  {"all-gather errors B", 31, 34},
                  {"backward B", 31, 46},
                  {"backward A", 46, 86},
                  {"all-to-all gradients A", 86, 92},
                  {"sum A", 92, 92 + kSum},
                  {"update A", 92 + kSum, 92.5 + kSum},
                  {"all-gather parameters A", 92.5 + kSum, 98.5 + kSum},
                  {"gradient B", 92.5 + kSum, 107.5 + kSum},
                  {"update B", 107.5 + kSum, 108.5 + kSum},
                  {"all-gather parameters B", 108.5 + kSum, 119.5 + kSum}},
         .compute = kPcnnCompute,
         .megabytes = kPcnnMegabytes,
         .iterations = {1, 7, 19},
         .first = -1});
}

TEST_CASE("normalisations travel with the convolution before them", "[layerwise]") {
  WorkloadTrace trace = two_layers(1);
  LayerTrace norm = testing::layer("N", 1e-3, 1e-3, 1e-4, {1e3, 1e3});
  norm.kind = LayerKind::batch_norm;
  norm.inputs = {1};
  trace.layers.insert(trace.layers.begin() + 2, norm);
  trace.layers[3].inputs = {2};
  const Cluster cluster = testing::cluster_of(2);
  const ConfigNode node = ConfigNode::load_text("{}", "options");
  const auto source = [&](std::int64_t) { return trace; };
  const TrainingStep step = builtin_strategies().make(kStrategy, node, node)->compile({cluster, {0, 1}, 2, source, {}});
  std::vector<std::pair<std::string, double>> sent;
  for (const Task& task : step.graph.tasks())
    if (const auto* collective = std::get_if<Collective>(&task.work))
      sent.emplace_back(task.label.layer, collective->bytes.value);
  CHECK(sent == std::vector<std::pair<std::string, double>>{{"B", 20e6}, {"A", 10e6 + 2e3}});
}

TEST_CASE("sharded updates shard the optimizer's state", "[layerwise]") {
  const Cluster cluster = testing::cluster_of(2);
  const auto state = [&](const std::string& options) {
    const ConfigNode node = ConfigNode::load_text(options, "options");
    return builtin_strategies()
        .make(kStrategy, node, node)
        ->compile({cluster, {0, 1}, 2, two_layers, {}, Optimizer::adam})
        .memory.front()
        .use.optimizer_state.value;
  };
  CHECK(state("{gradients: all_reduce}") == Approx(2 * 30e6));
  CHECK(state("{gradients: reduce_scatter}") == Approx(30e6));
  CHECK(state("{gradients: pcnn}") == Approx(30e6));
}

}  // namespace epocast::layerwise_data_parallel_test
