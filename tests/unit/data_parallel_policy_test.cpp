// What data_parallel can do beyond buckets, on two workers and two layers, worked out by hand. All times are in ms.
#include "tests/support/error_message.hpp"
#include "tests/support/hand_timeline.hpp"

using namespace epocast;
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
  // cycle.
  check({"data_parallel",
         "{granularity: cycle, cycle: 25 ms}",
         118,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"wait B", 60, 80},
          {"all-reduce B", 80, 102},
          {"wait A", 100, 105},
          {"all-reduce A", 105, 117},
          {"update B", 102, 104},
          {"update A", 117, 118}}});
  // All in one cycle of 100, which ends at 130, but at most 26 MB at a time.
  check({"data_parallel",
         "{granularity: cycle, cycle: 100 ms, bucket: 26 MB}",
         165,
         {{"forward A", 0, 10},
          {"forward B", 10, 30},
          {"backward B", 30, 60},
          {"backward A", 60, 100},
          {"wait A", 100, 130},
          {"all-reduce B..A", 130, 156},
          {"all-reduce A", 156, 164},
          {"update B", 156, 158},
          {"update A", 164, 165}}});
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
