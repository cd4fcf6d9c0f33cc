// Parameter servers on a star of 1 GB/s and 1 ms, worked out by hand. Workers share the server's uplink when they pull
// and its downlink when they push. Times in ms: forward 10, backward 20, update 2, 10 MB of parameters; adding 10 MB to
// a sum takes three memory accesses, 3 x 10 MB / 500 GB/s = 0.06. The server is the first device that is not a worker.
#include <catch2/catch.hpp>

#include <numeric>
#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

using namespace epocast;
using testing::interval;

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

WorkloadTrace one_layer(std::int64_t batch) {
  return testing::chain({testing::layer("A", 10 * kMs, 20 * kMs, 2 * kMs, {10 * kMB})}, batch);
}

/// A strategy's graph and its run of 50 iterations.
struct Executed {
  CyclicTaskGraph graph;
  ExecutionResult result;

  double start(const std::string& label, std::uint32_t rank, std::int64_t iteration) const {
    return interval(graph, result, label, rank, iteration).start;
  }
  void check(const std::string& label, std::uint32_t rank, std::int64_t iteration, double start, double end) const {
    INFO(label << " of rank " << rank << ", iteration " << iteration);
    const Interval found = interval(graph, result, label, rank, iteration);
    CHECK(found.start == Approx(start * kMs).margin(1e-9));
    CHECK(found.end == Approx(end * kMs).margin(1e-9));
  }
};

Executed run(const testing::Star& star, int workers, const std::string& options,
             const std::vector<double>& slowdown = {}) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto strategy = builtin_strategies().make("parameter_server", node, node);
  TrainingStep step = strategy->compile({star.cluster(), devices, workers, one_layer, {}});
  ExecutionResult result = testing::simulate(
      star.cluster(), step.graph, {.iterations = 50, .exact = true, .slowdown = slowdown, .record_timeline = true});
  return {std::move(step.graph), std::move(result)};
}

}  // namespace

TEST_CASE("synchronous: all push, the server sums and updates, all pull", "[parameter_server]") {
  // pull: 1 + 2 x 10 MB through one link; then 10 + 20; push as pull; two sums of 0.06 and the update of 2: 74.12 in
  // all.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 2, "{mode: sync}");
  const double period = 74.12;
  for (const std::int64_t k : {0, 1, 30}) {
    const double t = static_cast<double>(k) * period;
    for (const std::uint32_t rank : {0U, 1U}) {
      executed.check("pull A", rank, k, t, t + 21);
      executed.check("forward A", rank, k, t + 21, t + 31);
      executed.check("backward A", rank, k, t + 31, t + 51);
      executed.check("push A", rank, k, t + 51, t + 72);
    }
    // The gradients arrive together: the server takes one after the other, in either order.
    const std::uint32_t first = executed.start("accumulate A", 0, k) < executed.start("accumulate A", 1, k) ? 0 : 1;
    executed.check("accumulate A", first, k, t + 72, t + 72.06);
    executed.check("accumulate A", 1 - first, k, t + 72.06, t + 72.12);
    executed.check("update A", 0, k, t + 72.12, t + 74.12);
  }
  const StepMetrics& metrics = executed.result.metrics;
  CHECK(executed.result.iteration == Approx(period * kMs).margin(1e-9));
  CHECK(metrics.mean_staleness == 0.0);
  CHECK(metrics.max_staleness == 0);
  CHECK(metrics.bytes == Approx(4 * 10 * kMB));
  CHECK(metrics.compute == Approx(30 * kMs).margin(1e-9));
  CHECK(metrics.exposed_communication == Approx(42 * kMs).margin(1e-9));
  CHECK(metrics.max_link_utilization == Approx(20 / period).epsilon(1e-9));  // 20 MB per iteration and direction
}

TEST_CASE("asynchronous: equal workers settle one update apart", "[parameter_server]") {
  // Both pull at 0 and push at 51, through half a link each: 72. The server applies one gradient first (72..74; which
  // one is a tie), then the other (74..76). The first worker pulls at 74: from 75 to 77 alone, 2 MB; then both share
  // the link: its other 8 MB take until 93. The second has 2 MB left by then, alone: 95. So it stays 2 behind and the
  // push is like the pull: the first pushes 123..142, the second 125..144, updates 142..144 and 144..146: all as
  // before, 70 later.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 2, "{mode: async}");
  const std::uint32_t first = executed.start("update A", 0, 0) < executed.start("update A", 1, 0) ? 0 : 1;
  for (const std::uint32_t rank : {0U, 1U}) {
    const double behind = rank == first ? 0 : 2;
    executed.check("pull A", rank, 0, 0, 21);
    executed.check("push A", rank, 0, 51, 72);
    executed.check("update A", rank, 0, 72 + behind, 74 + behind);
    for (const std::int64_t k : {1, 2, 40}) {
      const double t = 70 * static_cast<double>(k - 1) + behind;
      executed.check("pull A", rank, k, t + 74, t + 93);
      executed.check("backward A", rank, k, t + 103, t + 123);
      executed.check("push A", rank, k, t + 123, t + 142);
      executed.check("update A", rank, k, t + 142, t + 144);
    }
  }
  CHECK(executed.result.iteration == Approx(70 * kMs).margin(1e-9));
  CHECK(executed.result.metrics.mean_staleness == 1.0);  // the other worker's update lies between
}

TEST_CASE("asynchronous: who is ready first is served first", "[parameter_server]") {
  // Worker 0 computes twice as long: worker 1 has the link to itself, pushes 51..62 and is served 62..64; then it pulls
  // 64..75. Worker 0 pushes at 81, alone as well: 92, and is served 92..94.
  const testing::Star star(3, 1e9, 1 * kMs);
  const Executed executed = run(star, 2, "{mode: async}", {2, 1, 1});
  executed.check("update A", 1, 0, 62, 64);
  executed.check("pull A", 1, 1, 64, 75);
  executed.check("backward A", 0, 0, 41, 81);
  executed.check("push A", 0, 0, 81, 92);
  executed.check("update A", 0, 0, 92, 94);
}

TEST_CASE("asynchronous: n equal workers are n - 1 versions behind", "[parameter_server]") {
  // Every worker's gradient is applied once between two of any other's: n - 1 others. Synchronously nobody is behind.
  for (const int workers : {2, 4, 8}) {
    INFO(workers << " workers");
    const testing::Star star(workers + 1, 1e12, 0);
    const Executed async = run(star, workers, "{mode: async}");
    CHECK(async.result.metrics.mean_staleness == workers - 1.0);
    CHECK(async.result.metrics.max_staleness == workers - 1);
    const Executed sync = run(star, workers, "{mode: sync}");
    CHECK(sync.result.metrics.mean_staleness == 0.0);
    CHECK(sync.result.metrics.max_staleness == 0);
  }
}

TEST_CASE("a lone worker that is its own server moves nothing", "[parameter_server]") {
  const testing::Star star(2, 1e9, 1 * kMs);
  const Executed executed = run(star, 1, "{mode: async, location: colocated}");
  CHECK(executed.result.iteration == Approx(32 * kMs).margin(1e-9));  // 10 + 20 + 2
  CHECK(executed.result.metrics.bytes == 0);
}
