// Hogwild! in one node, worked out by hand. Times in ms: forward 10, backward 20; 10 MB of parameters, of which an SGD
// update makes 3 accesses.
#include <catch2/catch.hpp>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::hogwild_test {

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

ExecutionResult run(Cluster cluster, int workers, const std::string& options,
                    const ExecutionOptions& how = {.iterations = 60, .exact = true}) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto trace = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 10 * kMs, 20 * kMs, 2 * kMs, {10 * kMB})}, batch);
  };
  const TrainingStep step =
      builtin_strategies().make("hogwild", node, node)->compile({cluster, devices, workers, trace, {}});
  return testing::simulate(cluster, step.graph, how);
}

/// The star's devices, all in one node.
Cluster one_node(const testing::Star& star) {
  Cluster cluster = star.cluster();
  for (Device& device : cluster.devices) device.node = "node";
  return cluster;
}

}  // namespace

TEST_CASE("memory serves one update after the other, and nothing is sent", "[hogwild]") {
  // 3 x 10 MB at 15 GB/s: 2 ms. While n updates of 2 fit into a step of 30, nobody waits but in the first round: n
  // workers are n times as fast. From n = 16 on the memory is always busy: n x 2.
  const testing::Star star(24, 1e9, 1 * kMs);
  for (const int workers : {1, 2, 8, 15, 16, 17, 24}) {
    INFO(workers << " workers");
    const ExecutionResult result = run(one_node(star), workers, "{memory_bandwidth: 15 GB/s}");
    CHECK(result.iteration == Approx(std::max(32, 2 * workers) * kMs).margin(1e-9));
    CHECK(result.metrics.bytes == 0);
    CHECK(result.metrics.mean_staleness == workers - 1.0);
  }
}

TEST_CASE("by default the memory is as fast as all workers' together", "[hogwild]") {
  // So nobody waits for it: each worker takes 32 ms a step, as one that trains alone does.
  const testing::Star star(2, 1e9, 1 * kMs);
  CHECK(run(one_node(star), 1, "{}").iteration == Approx(32 * kMs).margin(1e-9));
  CHECK(run(one_node(star), 2, "{}").iteration == Approx(32 * kMs).margin(1e-9));
  // A faster memory does not make a worker's own update faster: it still takes 2 ms.
  CHECK(run(one_node(star), 1, "{memory_bandwidth: 60 GB/s}").iteration == Approx(32 * kMs).margin(1e-9));
}

TEST_CASE("no worker waits for one that is slower or stands still", "[hogwild]") {
  // 60 steps of 32 ms; of the slow worker, three times that. Whichever it is makes no difference.
  const testing::Star star(3, 1e9, 1 * kMs);
  for (const std::size_t which : {0U, 2U}) {
    INFO("worker " << which);
    std::vector<double> slowdown(3, 1);
    slowdown[which] = 3;
    const ExecutionResult slow = run(one_node(star), 3, "{}", {.iterations = 60, .exact = true, .slowdown = slowdown});
    CHECK(slow.workers[1].ended == Approx(60 * 32 * kMs).margin(1e-9));
    CHECK(slow.workers[which].ended == Approx(3 * 60 * 32 * kMs).margin(1e-9));
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const Disturbance stop{static_cast<DeviceId>(which), {.from = 40 * kMs, .factor = kNever}};
    const ExecutionResult stopped =
        run(one_node(star), 3, "{}", {.iterations = 60, .exact = true, .slow_devices = {stop}});
    CHECK(stopped.workers[1].steps == 60);
    CHECK(stopped.workers[which].steps == 1);
  }
}

TEST_CASE("a worker that is slower or stands still does not keep the memory", "[hogwild]") {
  // Three updates of 2 ms fit into a step of 32. Were the memory as slow as the first worker, they took 6 each.
  const testing::Star star(3, 1e9, 1 * kMs);
  const std::string options = "{memory_bandwidth: 15 GB/s}";
  const ExecutionResult slow =
      run(one_node(star), 3, options, {.iterations = 60, .exact = true, .slowdown = {3, 1, 1}});
  CHECK(slow.workers[1].ended < (60 * 32 + 10) * kMs);
  const Disturbance stop{0, {.from = 40 * kMs, .factor = std::numeric_limits<double>::infinity()}};
  const ExecutionResult stopped =
      run(one_node(star), 3, options, {.iterations = 60, .exact = true, .slow_devices = {stop}});
  CHECK(stopped.workers[1].steps == 60);
}

TEST_CASE("an update reads and writes fp32 values as often as the optimizer, or the study, says", "[hogwild]") {
  const testing::Star star(1, 1e9, 1 * kMs);
  const Cluster cluster = star.cluster();
  StrategyContext context{cluster, {0}, 1, TraceSource(), {}};
  // Two values; SGD makes 3 accesses of 4 bytes, whatever the weights' precision.
  CHECK(context.update_bytes(Bytes(8), Precision::fp32).value == 24);
  CHECK(context.update_bytes(Bytes(4), Precision::bf16).value == 24);
  context.update_accesses = 100;
  CHECK(context.update_bytes(Bytes(4), Precision::bf16).value == 800);
}

TEST_CASE("workers on different nodes share no memory", "[hogwild]") {
  const testing::Star star(2, 1e9, 1 * kMs);
  CHECK_THROWS_WITH(run(star.cluster(), 2, "{}"), Catch::Contains("'d0' and 'd1' are on different nodes"));
}

}  // namespace epocast::hogwild_test
