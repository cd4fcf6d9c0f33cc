#pragma once
// Parameter servers on a star, run for 50 iterations. Times in ms: forward 10, backward 20, update 2 of each layer of
// 10 MB. The server is the first device that is not a worker.

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::testing::served {

inline constexpr double kMs = 1e-3, kMB = 1e6;

inline WorkloadTrace one_layer(std::int64_t batch) {
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

inline Executed run(const Cluster& cluster, int workers, const std::string& options,
                    const std::vector<double>& slowdown, const TraceSource& trace) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  std::vector<DeviceId> devices(static_cast<std::size_t>(workers));
  std::iota(devices.begin(), devices.end(), 0);
  const auto strategy = builtin_strategies().make("parameter_server", node, node);
  TrainingStep step = strategy->compile({cluster, devices, workers, trace, {}});
  ExecutionResult result = testing::simulate(
      cluster, step.graph, {.iterations = 50, .exact = true, .slowdown = slowdown, .record_timeline = true});
  return {std::move(step.graph), std::move(result)};
}

inline Executed run(const testing::Star& star, int workers, const std::string& options,
                    const std::vector<double>& slowdown = {}, const TraceSource& trace = one_layer) {
  return run(star.cluster(), workers, options, slowdown, trace);
}

inline WorkloadTrace two_layers(std::int64_t batch) {
  return testing::chain({testing::layer("A", 10 * kMs, 20 * kMs, 2 * kMs, {10 * kMB}),
                         testing::layer("B", 10 * kMs, 20 * kMs, 2 * kMs, {10 * kMB})},
                        batch);
}

}  // namespace epocast::testing::served
