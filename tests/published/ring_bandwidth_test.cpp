// All-reduces over several rings on the NVLinks of a DGX-1, as simulated with nominal rates, against what NCCL reached.
// A comparison, not a fit: nothing here was adjusted to the measurements. A single ring in rank order, the alternative,
// has 50 and 20 GB/s on 8 GPUs.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "costmodels/network_calibration.hpp"
#include "tests/support/mean.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::ring_bandwidth_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;

struct Point {
  int ranks;
  double bytes;
  double bus_bandwidth;  ///< measured [B/s]
};

/// Simulated over measured bus bandwidth - 1, over the GPUs 0, 1, .. of a platform.
std::vector<double> errors(const std::string& platform, const std::vector<Point>& points) {
  const Cluster cluster = testing::platform(platform);
  std::vector<testing::Run> runs;
  for (const Point& point : points) {
    std::vector<DeviceId> gpus;
    for (int gpu = 0; gpu < point.ranks; ++gpu)
      for (std::size_t d = 0; d < cluster.devices.size(); ++d)
        if (cluster.devices[d].name == "gpu-" + std::to_string(gpu)) gpus.push_back(static_cast<DeviceId>(d));
    REQUIRE(gpus.size() == static_cast<std::size_t>(point.ranks));
    testing::Run& run = runs.emplace_back();
    run.options.iterations = 1;
    const GroupId group = run.graph.add_group("gpus", gpus);
    const QueueId queue = run.graph.add_queue("queue", group, QueueRole::communication, Discipline::program_order);
    run.graph.collective(queue, {.group = group, .bytes = Bytes(point.bytes)}, {"all-reduce", ""});
  }
  std::vector<double> out;
  const std::vector<ExecutionResult> results = testing::simulate(cluster, runs);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double moved = 2 * (points[i].ranks - 1.0) / points[i].ranks * points[i].bytes;
    out.push_back(moved / results[i].total / points[i].bus_bandwidth - 1);
  }
  return out;
}

}  // namespace

TEST_CASE("all-reduces on 2 to 8 V100s over NVLink come within 22 % of NCCL's bandwidth") {
  // NCCL keeps 90 to 92 % of the rings' nominal rate, 85 and 87 % with 4 and 7 GPUs. With 5, GPU 4 has NVLink to GPU 0
  // only: the ring closes over PCIe, at 31.5 GB/s in both directions, where NCCL finds 37.
  const NetworkMeasurements measured =
      read_network_measurements(CsvTable::load(kRoot / "costmodels/measurements/allreduce_v100_nvlink.csv"));
  std::vector<Point> points;
  for (const CollectiveTiming& timing : measured.timings)
    if (timing.bytes >= 16 * 1048576.0)
      points.push_back(
          {timing.ranks, timing.bytes, 2 * (timing.ranks - 1.0) / timing.ranks * timing.bytes / timing.time.value});
  REQUIRE(points.size() > 1900);
  const std::vector<double> all = errors("dgx1_v100", points);
  std::vector<double> large;
  for (std::size_t i = 0; i < points.size(); ++i) {
    CAPTURE(points[i].ranks, points[i].bytes, points[i].bus_bandwidth, all[i]);
    CHECK(std::abs(all[i]) < (points[i].bytes < 64 * 1048576.0 ? 0.22 : 0.19));
    if (points[i].ranks == 8 && points[i].bytes > 5e8) large.push_back(all[i]);
  }
  CHECK(testing::mean(large) == Approx(0.11).margin(0.01));
}

TEST_CASE("all-reduces on P100s over NVLink come within 30 % of NCCL's bandwidth where it uses the same rings") {
  // github:uuudown/Tartan, microbenchmark/scale_up_cl, NCCL 2, large messages; the GPU is inferred from the rates.
  const std::vector<Point> points{
      {2, 1e9, 17.28e9}, {3, 1e9, 34.56e9}, {4, 1e9, 52.09e9}, {6, 1e9, 34.70e9}, {8, 1e9, 62.24e9}};
  const std::vector<double> all = errors("dgx1_p100", points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    CAPTURE(points[i].ranks, all[i]);
    CHECK(std::abs(all[i]) < 0.30);
  }
}

TEST_CASE("all-reduces on P100s that NCCL 2 did otherwise are missed") {
  // With 7 GPUs NCCL stayed with one ring each way (34.7 GB/s, as with 6), where halves of links make three (60). With
  // 5 it reached 5.57 GB/s over PCIe, less than half of PCIe's rate in one direction; the simulated rings go both ways
  // at line rate. Should these ever be hit, say so here.
  const std::vector<double> all = errors("dgx1_p100", {{7, 1e9, 34.72e9}, {5, 1e9, 5.57e9}});
  CHECK(all[0] == Approx(0.725).margin(0.02));
  CHECK(all[1] == Approx(4.65).margin(0.1));
}

}  // namespace epocast::ring_bandwidth_test
