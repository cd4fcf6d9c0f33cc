// What data_parallel can do beyond buckets, on two workers and two layers, worked out by hand. All times are in ms.
#include <numeric>
#include <tuple>

#include "strategies/register.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/hand_timeline.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::data_parallel_policy_test {

using testing::chain;
using testing::check;
using testing::kMB;
using testing::kMs;
using testing::layer;

TEST_CASE("updates before the forward pass: each layer waits for its own gradient only", "[data_parallel]") {
  // The all-reduce of A, made last and needed first, cannot hide; that of B could still hide behind forward A.
  check({"data_parallel",
         "{granularity: layer, update: before_forward}",
         115,
         {{"update A", 0, 1},
          {"forward A", 1, 11},
          {"update B", 11, 13},
          {"forward B", 13, 33},
          {"backward B", 33, 63},
          {"backward A", 63, 103},
          {"all-reduce B", 63, 85},
          {"all-reduce A", 103, 115}}});
}

namespace {

/// As two_layers, but B's gradient comes in three tensors of 20 MB, 22 ms each, and A's in one of 10 MB, 12 ms.
WorkloadTrace heavy_end(std::int64_t batch) {
  return chain({layer("A", 10 * kMs, 40 * kMs, 1 * kMs, {10 * kMB}),
                layer("B", 20 * kMs, 30 * kMs, 2 * kMs, {20 * kMB, 20 * kMB, 20 * kMB})},
               batch);
}

}  // namespace

TEST_CASE("first ready, first sent: the first layer waits behind the last one's gradients", "[data_parallel]") {
  // In the steady state B's last gradient (B.0) holds up A's, and A's holds up forward A: 2 + 20 + 30 + 3 x 22 + 12 + 1
  // + 10 = 141 around the cycle update B .. all-reduce B.0, all-reduce A, update A, forward A, update B. Update B
  // itself needs no waiting.
  check({"data_parallel",
         "{granularity: tensor, update: before_forward, order: fifo}",
         141,
         {{"update A", 0, 1},
          {"forward A", 1, 11},
          {"update B", 11, 13},
          {"forward B", 13, 33},
          {"backward B", 33, 63},
          {"backward A", 63, 103},
          {"all-reduce B.2", 63, 85},
          {"all-reduce B.1", 85, 107},
          {"all-reduce B.0", 107, 129},
          {"all-reduce A.0", 129, 141}},
         103,
         2 * 70},
        heavy_end);
}

TEST_CASE("two at once: all-reduces share the link, each takes longer", "[data_parallel]") {
  // Backward B 30..60, A 60..100. B.2 and B.1 wait 2 for latencies and share 40 of the link; then so do B.0 and A.0,
  // which ends after 2 + 2 x 10, when 10 of B.0's 20 are left. Updates of 2 and 1.
  const testing::Star star(2, 1e9, 1 * kMs);
  const ConfigNode options = ConfigNode::load_text("{granularity: tensor, update: after_all, at_once: 2}", "options");
  const TrainingStep step =
      builtin_strategies().make("data_parallel", options, options)->compile({star.cluster(), {0, 1}, 2, heavy_end, {}});
  const ExecutionResult result =
      testing::simulate(star.cluster(), step.graph, {.iterations = 20, .exact = true, .record_timeline = true});
  for (const auto& [label, start, end] :
       {std::tuple("B.2", 60.0, 102.0), {"B.1", 60.0, 102.0}, {"B.0", 102.0, 134.0}, {"A.0", 102.0, 124.0}}) {
    CAPTURE(label);
    const Interval found = testing::interval(step.graph, result, std::string("all-reduce ") + label, 0, 3);
    CHECK(found.start == Approx((3 * 137 + start) * kMs));
    CHECK(found.end == Approx((3 * 137 + end) * kMs));
  }
  CHECK(result.iteration == Approx(137 * kMs));
}

TEST_CASE("priority: what the next forward pass needs first overtakes", "[data_parallel]") {
  // In the first iteration A's gradient, ready at 103, overtakes B.0 at 107 and lets the second start at 119, 11 before
  // the 130 that an iteration takes then: 2 + 20 + 30 + 22 + 22 + 12 + 22, around update B .. all-reduce B.0.
  check({"data_parallel",
         "{granularity: tensor, update: before_forward, order: priority}",
         130,
         {{"update A", -11, -10},
          {"forward A", -10, 0},
          {"update B", 11, 13},
          {"forward B", 13, 33},
          {"backward B", 33, 63},
          {"backward A", 63, 103},
          {"all-reduce B.2", 63, 85},
          {"all-reduce B.1", 85, 107},
          {"all-reduce A.0", 107, 119},
          {"all-reduce B.0", 119, 141}},
         103,
         2 * 70,
         {1, 7, 19}},
        heavy_end);
}

TEST_CASE("accumulation: gradients of the last micro-batch travel, once", "[data_parallel]") {
  check({"data_parallel",
         "{granularity: layer, accumulation: 2}",
         213,
         {{"forward A #0", 0, 10},
          {"forward B #0", 10, 30},
          {"backward B #0", 30, 60},
          {"backward A #0", 60, 100},
          {"forward A #1", 100, 110},
          {"forward B #1", 110, 130},
          {"backward B #1", 130, 160},
          {"backward A #1", 160, 200},
          {"all-reduce B", 160, 182},
          {"all-reduce A", 200, 212},
          {"update B", 200, 202},
          {"update A", 212, 213}},
         203},
        testing::two_layers, 4);
}

TEST_CASE("a small first bucket starts early", "[data_parallel]") {
  // A first bucket of 5 MB closes behind B's bias; the other 25 MB are the second.
  check({"data_parallel",
         "{bucket: 25 MB, first_bucket: 5 MB}",
         130,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"all-reduce B", 60, 67},
          {"all-reduce B..A", 100, 127},
          {"update B", 127, 129},
          {"update A", 129, 130}}});
}

TEST_CASE("fusion by cycles: what is made waits for the next multiple of the cycle", "[data_parallel]") {
  // The backward pass starts at 30. B is made 30 later and sent at the end of the 2nd cycle of 25, A 70 later, 3rd
  // cycle. A layer's two tensors run as one.
  check({"data_parallel",
         "{granularity: cycle, cycle: 25 ms}",
         118,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"wait for the cycle of B.0", 60, 80},
          {"all-reduce B.1", 80, 102},
          {"all-reduce B.0", 80, 102},
          {"wait for the cycle of A.0", 100, 105},
          {"all-reduce A.1", 105, 117},
          {"all-reduce A.0", 105, 117},
          {"update B", 102, 104},
          {"update A", 117, 118}}});
}

namespace {

/// Four layers, 5 ms each way, 10 MB each: an all-reduce alone takes 12 ms. Backward passes end at 25, 30, 35 and 40.
WorkloadTrace four_layers(std::int64_t batch) {
  std::vector<LayerTrace> layers;
  for (const char* name : {"A", "B", "C", "D"}) layers.push_back(layer(name, 5 * kMs, 5 * kMs, 1 * kMs, {10 * kMB}));
  return chain(layers, batch);
}

testing::HandTimeline four_layers_by_cycles(const std::string& bucket, double period, std::vector<testing::Row> sent) {
  testing::HandTimeline expected{"data_parallel",
                                 "{granularity: cycle, cycle: 1 ms, update: after_all, bucket: " + bucket + "}",
                                 period,
                                 {{"forward A", 0, 5},
                                  {"forward B", 5, 10},
                                  {"forward C", 10, 15},
                                  {"forward D", 15, 20},
                                  {"backward D", 20, 25},
                                  {"backward C", 25, 30},
                                  {"backward B", 30, 35},
                                  {"backward A", 35, 40},
                                  {"wait for the cycle of D.0", 25, 25},
                                  {"wait for the cycle of C.0", 30, 30},
                                  {"wait for the cycle of B.0", 35, 35},
                                  {"wait for the cycle of A.0", 40, 40},
                                  {"update D", period - 4, period - 3},
                                  {"update C", period - 3, period - 2},
                                  {"update B", period - 2, period - 1},
                                  {"update A", period - 1, period}},
                                 44,
                                 2 * 40};
  expected.rows.insert(expected.rows.end(), sent.begin(), sent.end());
  expected.queue_decides = true;
  return expected;
}

}  // namespace

TEST_CASE("fusion by cycles: what piles up during an all-reduce travels together after it", "[data_parallel]") {
  // While D travels, C, B and, last, no more are made: 2 + 20 for both. A is made meanwhile and goes alone.
  check(four_layers_by_cycles("64 MiB", 75,
                              {{"all-reduce D.0", 25, 37},
                               {"all-reduce C.0", 37, 59},
                               {"all-reduce B.0", 37, 59},
                               {"all-reduce A.0", 59, 71}}),
        four_layers);
  // 20 MB are the most: the same. With 19.9 none fits beside another.
  check(four_layers_by_cycles("20 MB", 75,
                              {{"all-reduce D.0", 25, 37},
                               {"all-reduce C.0", 37, 59},
                               {"all-reduce B.0", 37, 59},
                               {"all-reduce A.0", 59, 71}}),
        four_layers);
  check(four_layers_by_cycles("19.9 MB", 77,
                              {{"all-reduce D.0", 25, 37},
                               {"all-reduce C.0", 37, 49},
                               {"all-reduce B.0", 49, 61},
                               {"all-reduce A.0", 61, 73}}),
        four_layers);
}

TEST_CASE("fusion by cycles pays latency for few all-reduces however many workers there are", "[data_parallel]") {
  // 512 workers, 50 us a message: 1022 of them are 51.1 ms an all-reduce. Forty layers of 5 MB, 5 ms each way, at 10
  // GB/s: 0.998 ms a layer. The first gradient is there after 205 ms, and the queue is busy from then on. While it
  // travels, ten more are made, while these do twelve, then thirteen, then the last four: five all-reduces, then the
  // updates of the last four layers. One all-reduce for each layer would be forty.
  constexpr int kWorkers = 512;
  const testing::Star star(kWorkers, 10e9, 50e-6);
  std::vector<DeviceId> workers(kWorkers);
  std::iota(workers.begin(), workers.end(), 0);
  const auto run = [&](const std::string& options) {
    const TraceSource forty = [](std::int64_t batch) {
      std::vector<LayerTrace> layers;
      for (int l = 0; l < 40; ++l)
        layers.push_back(layer("L" + std::to_string(l), 5 * kMs, 5 * kMs, 0.1 * kMs, {5 * kMB}));
      return chain(layers, batch);
    };
    const ConfigNode node = ConfigNode::load_text(options, "options");
    const auto strategy = builtin_strategies().make("data_parallel", node, node);
    const TrainingStep step = strategy->compile({star.cluster(), workers, kWorkers, forty, {}});
    return testing::simulate(star.cluster(), step.graph, {.iterations = 20});
  };
  const double messages = 2 * 511 * 50e-6, layer_time = 2 * 511.0 / 512 * 5 * kMB / 10e9;
  const ExecutionResult by_cycle = run("{granularity: cycle, cycle: 5 ms}");
  const ExecutionResult by_model = run("{granularity: model}");
  const ExecutionResult by_layer = run("{granularity: layer}");
  CHECK(by_model.iteration == Approx(404 * kMs + messages + 40 * layer_time).epsilon(1e-9));
  CHECK(by_layer.iteration == Approx(205 * kMs + 40 * (messages + layer_time) + 0.1 * kMs).epsilon(1e-9));
  CHECK(by_cycle.folded);
  CHECK(by_cycle.exact);
  CHECK(by_cycle.metrics.bytes == Approx(by_model.metrics.bytes));
  CHECK(by_cycle.bound->seconds <= by_cycle.iteration * (1 + 1e-12));
  CHECK(by_cycle.iteration == Approx(205.4 * kMs + 5 * messages + 40 * layer_time).epsilon(1e-9));
  CHECK(by_cycle.iteration < 1.02 * by_model.iteration);
}

TEST_CASE("half precision on the wire: half the bytes, and coding at 500 GB/s", "[data_parallel]") {
  // Encoding reads 4 and writes 2 bytes a value, decoding the reverse: 20 MB of gradients take 0.06 each, 10 MB 0.03.
  check({"data_parallel",
         "{granularity: layer, compression: fp16}",
         108.12,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"encode B", 60, 60.06},
          {"backward A", 60.06, 100.06},
          {"encode A", 100.06, 100.09},
          {"all-reduce B", 60.06, 72.06},
          {"all-reduce A", 100.09, 107.09},
          {"decode B", 100.09, 100.15},
          {"update B", 100.15, 102.15},
          {"decode A", 107.09, 107.12},
          {"update A", 107.12, 108.12}},
         103.18,
         30});
}

TEST_CASE("top-k: workers gather each other's largest values", "[data_parallel]") {
  // A tenth of 7.5 million values, with indices 6 MB. Encoding reads 30 MB of gradients, reads and writes 30 MB of what
  // was left over and writes 6 MB; decoding reads 2 x 6 MB and writes 30 MB. The other's 6 MB take 1 + 6.
  check({"data_parallel",
         "{granularity: model, compression: top_k, top_k: 0.1}",
         110.276,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"encode B..A", 100, 100.192},
          {"all-gather B..A", 100.192, 107.192},
          {"decode B..A", 107.192, 107.276},
          {"update B", 107.276, 109.276},
          {"update A", 109.276, 110.276}},
         103.276,
         12});
}

TEST_CASE("cores that communicate slow down all computations", "[data_parallel]") {
  Cluster cluster = testing::cluster_of(2);
  for (Device& device : cluster.devices) device.cores = 4;
  const StrategyContext context{cluster, {0, 1}, 2, testing::two_layers, {}};
  const auto make = [](const std::string& options) {
    const ConfigNode node = ConfigNode::load_text(options, "options");
    return builtin_strategies().make("data_parallel", node, node);
  };
  const TrainingStep all = make("{}")->compile(context), fewer = make("{communication_cores: 1}")->compile(context);
  REQUIRE(all.graph.tasks().size() == fewer.graph.tasks().size());
  for (std::size_t t = 0; t < all.graph.tasks().size(); ++t)
    if (const auto* compute = std::get_if<Compute>(&all.graph.tasks()[t].work))
      CHECK(std::get<Compute>(fewer.graph.tasks()[t].work).duration.longest().value ==
            Approx(compute->duration.longest().value * 4 / 3));
  CHECK_THAT(testing::message([&] { make("{communication_cores: 4}")->compile(context); }),
             Catch::Contains("communication_cores: 4 cores to communicate, but device 'd0' has only 4"));
}

}  // namespace epocast::data_parallel_policy_test
