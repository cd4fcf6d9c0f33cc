// Collectives across nodes as `nccl` takes them, on a described machine, against what NCCL measured on another of its
// kind: 10 nodes of up to 8 H100, with a card of 44 to 48 GB/s for each GPU, where p5_48xlarge has 50. Nothing is
// fitted: the rates are a data sheet's and, inside the node, a bus bandwidth measured elsewhere.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "costmodels/network_calibration.hpp"
#include "platforms/platform_loader.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::node_rings_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;
constexpr int kNodes = 10, kPerNode = 8;

struct Forecast {
  CollectiveTiming measured;
  double error = 0;  ///< simulated over measured time - 1
};

std::vector<Forecast> forecasts() {
  const NetworkMeasurements measured =
      read_network_measurements(CsvTable::load(kRoot / "costmodels/measurements/collectives_h100_cluster.csv"));
  Cluster cluster = load_platform_named(
      ConfigNode::load_text(fmt::format("platform: {{name: p5_48xlarge, nodes: {}}}", kNodes), "study").at("platform"),
      kRoot);
  std::vector<Forecast> out;
  std::vector<testing::Run> runs;
  for (const CollectiveTiming& timing : measured.timings) {
    if (timing.nodes != kNodes || timing.ranks == kNodes || timing.bytes < 1e8) continue;
    std::vector<DeviceId> gpus;
    for (int node = 0; node < kNodes; ++node)
      for (int gpu = 0; gpu < timing.ranks / kNodes; ++gpu)
        gpus.push_back(static_cast<DeviceId>(node * kPerNode + gpu));
    testing::Run& run = runs.emplace_back();
    run.options.iterations = 1;
    const GroupId group = run.graph.add_group("gpus", gpus);
    const QueueId queue = run.graph.add_queue("queue", group, QueueRole::communication, Discipline::program_order);
    run.graph.collective(
        queue, {.op = timing.op, .algorithm = CollectiveAlgorithm::nccl, .group = group, .bytes = Bytes(timing.bytes)},
        {"collective", ""});
    out.push_back({timing});
  }
  const std::vector<ExecutionResult> results = testing::simulate(cluster, runs);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].error = results[i].total / out[i].measured.time.value - 1;
  return out;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

TEST_CASE("collectives on 10 nodes of 2 to 8 H100: median within 5 % from 100 MB up and all within 45 %") {
  const std::vector<Forecast> all = forecasts();
  REQUIRE(all.size() > 80);
  std::vector<double> sizes, few;  // |error| of all, and of 2 and 4 GPUs a node, whose cards limit them
  for (const Forecast& f : all) {
    INFO(fmt::format("{} of {:.0f} MB over {} ranks: {:+.1f} %", to_string(f.measured.op), f.measured.bytes / 1e6,
                     f.measured.ranks, 100 * f.error));
    CHECK(std::abs(f.error) < 0.45);
    sizes.push_back(std::abs(f.error));
    if (f.measured.ranks < kNodes * kPerNode) few.push_back(std::abs(f.error));
  }
  WARN(fmt::format("medians of {} and, with 2 and 4 GPUs a node, {}: {:.1f} and {:.1f} %", sizes.size(), few.size(),
                   100 * median(sizes), 100 * median(few)));
  CHECK(median(sizes) < 0.05);
  CHECK(median(few) < 0.03);
}

}  // namespace epocast::node_rings_test
