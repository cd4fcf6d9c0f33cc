// Gossip on a star of 1 GB/s and 1 ms, worked out by hand. Times in ms: forward 10, backward 20, update 2; 10 MB of
// parameters, 11 to send, 0.06 to average.
#include <catch2/catch.hpp>

#include <numeric>
#include <string>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::gossip_test {

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

struct Executed {
  std::int64_t steps;
  ExecutionResult result;
};

Executed run(int workers, const std::string& options, const std::vector<double>& slowdown = {}) {
  const testing::Star star(workers, 1e9, 1 * kMs);
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto trace = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 10 * kMs, 20 * kMs, 2 * kMs, {10 * kMB})}, batch);
  };
  const TrainingStep step =
      builtin_strategies().make("gossip", node, node)->compile({star.cluster(), devices, workers, trace, {}});
  return {step.steps,
          testing::simulate(star.cluster(), step.graph, {.iterations = 30, .exact = true, .slowdown = slowdown})};
}

}  // namespace

TEST_CASE("a ring: to the next worker and back", "[gossip]") {
  // 32 of computation, 11 there, 11 back, 0.06. A worker's own message and its answer to another do not meet.
  const Executed waiting = run(3, "{overlap: false}");
  CHECK(waiting.result.iteration == Approx(54.06 * kMs).margin(1e-9));
  CHECK(waiting.result.metrics.bytes == Approx(3 * 2 * 10 * kMB));
  // Beside the next step, all of that is hidden: 22.06 < 30 until the update.
  const Executed beside = run(3, "{overlap: true}");
  CHECK(beside.result.iteration == Approx(32 * kMs).margin(1e-9));
  CHECK(beside.result.metrics.bytes == Approx(3 * 2 * 10 * kMB));
}

TEST_CASE("exponential: 1, 2, 4 ranks further in turn", "[gossip]") {
  const Executed executed = run(5, "{overlap: false, topology: exponential, period: 2}");
  CHECK(executed.steps == 6);
  // Three times two steps and an exchange.
  CHECK(executed.result.iteration == Approx(3 * (64 + 22.06) * kMs).margin(1e-9));
  CHECK(executed.result.metrics.bytes == Approx(3 * 5 * 2 * 10 * kMB));
}

TEST_CASE("a slow neighbour's computation delays nobody", "[gossip]") {
  // Worker 1 computes five times as long. Its communication thread answers all the same.
  const Executed executed = run(4, "{}", {1, 5, 1, 1});
  REQUIRE(executed.result.workers.size() == 4);
  CHECK(executed.result.workers[0].ended == Approx(executed.result.workers[3].ended).epsilon(0.02));
  CHECK(executed.result.workers[0].ended < 0.3 * executed.result.workers[1].ended);
}

}  // namespace epocast::gossip_test
