// Synchronous data parallelism on two workers and two layers, worked out by hand. Between 2 ranks a ring all-reduce is
// two rounds of half the vector: with 1 ms of latency and 1 GB/s, n MB take 2 + n ms. All times below are in ms.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

using namespace epocast;
using testing::interval;
using testing::layer;

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

/// What one row of a timeline should say, in ms.
struct Expected {
  std::string label;
  double start, end;
};

/// forward: A 10, B 20; backward: B 30, A 40; update: A 1, B 2. Gradients: A 6 + 4 MB, B 15 + 5 MB.
WorkloadTrace two_layers(std::int64_t batch) {
  return testing::chain({layer("A", 10 * kMs, 40 * kMs, 1 * kMs, {6 * kMB, 4 * kMB}),
                         layer("B", 20 * kMs, 30 * kMs, 2 * kMs, {15 * kMB, 5 * kMB})},
                        batch);
}

/// Runs 20 iterations of the options and compares the timeline of iteration k, which starts at k x `period`.
void check_timeline(const std::string& options, double period, const std::vector<Expected>& expected) {
  const testing::Star star(2, 1e9, 1 * kMs);
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const auto strategy = builtin_strategies().make("data_parallel", node, node);
  for (const CollectiveLevel level :
       {CollectiveLevel::automatic, CollectiveLevel::message, CollectiveLevel::flow, CollectiveLevel::closed_form}) {
    INFO(options << ", level " << to_string(level));
    const StrategyContext context{star.cluster(), {0, 1}, 2, two_layers, {.level = level}};
    const TrainingStep step = strategy->compile(context);
    const ExecutionResult result =
        testing::simulate(star.cluster(), step.graph, {.iterations = 20, .exact = true, .record_timeline = true});
    // Message level is not folded: rank 1 has the same timeline as rank 0. Collectives have rank 0 only.
    const std::uint32_t ranks = result.folded ? 1 : 2;
    for (const int iteration : {0, 7, 19}) {
      for (const Expected& e : expected) {
        for (std::uint32_t rank = 0; rank < (e.label.starts_with("all-reduce") ? 1 : ranks); ++rank) {
          INFO(e.label << " of rank " << rank << ", iteration " << iteration);
          const Interval found = interval(step.graph, result, e.label, rank, iteration);
          CHECK(found.start == Approx((iteration * period + e.start) * kMs).margin(1e-9));
          CHECK(found.end == Approx((iteration * period + e.end) * kMs).margin(1e-9));
        }
      }
    }
    CHECK(step.graph.tasks().size() == expected.size());  // nothing is left out above
    CHECK(result.iteration == Approx(period * kMs).margin(1e-9));
    CHECK(result.total == Approx(20 * period * kMs).margin(1e-9));
    CHECK(result.bound->seconds == Approx(period * kMs).margin(1e-9));  // nothing contends: the bound is the period
    CHECK(result.metrics.compute == Approx(103 * kMs).margin(1e-9));
    CHECK(result.metrics.bytes == Approx(2 * 30 * kMB));  // each rank sends 2 (P-1)/P n = n
  }
}

}  // namespace

TEST_CASE("overlap per layer: the big layer's all-reduce hides behind the small one's backward", "[data_parallel]") {
  check_timeline("{granularity: layer}", 113,
                 {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce B", 60, 82},    // 2 + 20, while backward A runs
                  {"all-reduce A", 100, 112},  // 2 + 10
                  {"update B", 100, 102},      // its gradient came long ago
                  {"update A", 112, 113}});
}

TEST_CASE("without overlap all-reduces queue up after the backward pass", "[data_parallel]") {
  check_timeline("{granularity: layer, overlap: false}", 135,
                 {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce B", 100, 122},
                  {"all-reduce A", 122, 134},
                  {"update B", 122, 124},
                  {"update A", 134, 135}});
}

TEST_CASE("fused: one all-reduce for the whole model", "[data_parallel]") {
  for (const char* overlap : {"true", "false"})  // the last gradient comes last either way
    check_timeline(std::string("{granularity: model, overlap: ") + overlap + "}", 135,
                   {{"forward A", 0, 10},
                    {"forward B", 10, 30},
                    {"backward B", 30, 60},
                    {"backward A", 60, 100},
                    {"all-reduce B..A", 100, 132},  // 2 + 30
                    {"update B", 132, 134},
                    {"update A", 134, 135}});
}

TEST_CASE("per tensor: the queue is busy in the order in which gradients come", "[data_parallel]") {
  check_timeline("{granularity: tensor}", 115,
                 {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce B.0", 60, 77},
                  {"all-reduce B.1", 77, 84},
                  {"all-reduce A.0", 100, 108},
                  {"all-reduce A.1", 108, 114},
                  {"update B", 100, 102},
                  {"update A", 114, 115}});
}

TEST_CASE("buckets close when they are full, across layers", "[data_parallel]") {
  // 15 MB: tensor B.0 fills the first bucket; B.1, A.0 and A.1 (5 + 6 + 4 MB) the second, which waits for backward A.
  // The update of B needs both.
  check_timeline("{granularity: bucket, bucket: 15 MB}", 120,
                 {{"forward A", 0, 10},
                  {"forward B", 10, 30},
                  {"backward B", 30, 60},
                  {"backward A", 60, 100},
                  {"all-reduce B", 60, 77},
                  {"all-reduce B..A", 100, 117},
                  {"update B", 117, 119},
                  {"update A", 119, 120}});
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
