// Collectives over several rings at once: where there are any, how long they take, and that all levels agree on it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "sim/collectives/group_network.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::collective_rings_test {

using testing::Run;
using testing::simulate;

namespace {

std::vector<DeviceId> first(int count) {
  std::vector<DeviceId> devices(static_cast<std::size_t>(count));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

CyclicTaskGraph one_collective(const std::vector<DeviceId>& devices, Collective collective) {
  CyclicTaskGraph graph;
  collective.group = graph.add_group("ranks", devices);
  const QueueId queue = graph.add_queue("queue", collective.group, QueueRole::communication, Discipline::program_order);
  graph.collective(queue, collective, {"collective", ""});
  return graph;
}

Cluster described(const std::string& platform) {
  return load_platform_named(ConfigNode::load_text("platform: " + platform, "study").at("platform"),
                             EPOCAST_SOURCE_DIR);
}

Run run_of(const std::vector<DeviceId>& devices, const Collective& collective) {
  return {one_collective(devices, collective), {.iterations = 1}};
}

/// How many rings the first devices of a shipped platform have; 0: one, in rank order.
int rings_of(const std::string& name, int devices) {
  const Cluster cluster = testing::platform(name);
  return std::stoi(testing::in_child([&] {
    SimEngine engine(cluster);
    std::vector<int> hosts, nodes;
    std::vector<std::string> seen;
    for (int d = 0; d < devices; ++d) {
      const Device& device = cluster.devices[static_cast<std::size_t>(d)];
      hosts.push_back(engine.find_host(device.name));
      const auto place = std::find(seen.begin(), seen.end(), device.node);
      nodes.push_back(static_cast<int>(place - seen.begin()));
      if (place == seen.end()) seen.push_back(device.node);
    }
    const GroupNetwork network = examine_network(engine, hosts, nodes);
    if (network.rings.empty()) CHECK(network.choose_rings(0).empty());
    return std::to_string(network.rings.size());
  }));
}

constexpr CollectiveLevel kLevels[] = {CollectiveLevel::message, CollectiveLevel::flow, CollectiveLevel::closed_form};

}  // namespace

TEST_CASE("rings of a DGX-1 take what the formula says, at every level", "[rings]") {
  // 8 ranks, all links busy: 4 links of 20 GB/s or 6 of 25 GB/s a GPU, each way. An all-reduce is 14 steps of 3.4 us
  // and moves 2 x 7/8 of the vector through each GPU, which adds 7/8 of it up: rings share the rate of additions.
  struct Machine {
    std::string platform;
    double bandwidth;
  };
  for (const auto& [platform, bandwidth] : {Machine{"dgx1_p100", 80e9}, Machine{"dgx1_v100", 150e9}}) {
    const Cluster cluster = testing::platform(platform);
    std::vector<Run> runs;
    std::vector<double> expected;
    for (const double bytes : {0.0, 1e4, 1e8})
      for (const double gamma : {0.0, 1e-11})
        for (const CollectiveLevel level : kLevels) {
          runs.push_back(run_of(first(8), {.level = level, .bytes = Bytes(bytes), .gamma = gamma}));
          expected.push_back(14 * 3.4e-6 + 7 * bytes / 8 * (2 / bandwidth + gamma));
        }
    const std::vector<ExecutionResult> results = simulate(cluster, runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      CAPTURE(platform, i);
      CHECK(results[i].total == Approx(expected[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("levels agree for rings over any GPUs of a DGX-1, and conserve bytes", "[rings]") {
  const std::vector<std::vector<DeviceId>> groups = {first(3), first(4), first(5),     first(6),
                                                     first(7), first(8), {0, 4, 7, 3}, {7, 2, 5, 0, 3}};
  for (const std::string platform : {"dgx1_p100", "dgx1_v100"}) {
    const Cluster cluster = testing::platform(platform);
    std::vector<Run> runs;
    std::vector<std::string> texts;
    for (const auto& group : groups)
      for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather})
        for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::hierarchical})
          for (const CollectiveLevel level : kLevels) {
            runs.push_back(
                run_of(group, {.op = op, .algorithm = algorithm, .level = level, .bytes = Bytes(1e8), .gamma = 1e-12}));
            texts.push_back(fmt::format("{} {} {} ranks", platform, to_string(op), group.size()));
          }
    const std::vector<ExecutionResult> results = simulate(cluster, runs);
    for (std::size_t i = 0; i < runs.size(); i += 3) {
      CAPTURE(texts[i]);
      const ExecutionResult& message = results[i];
      const auto ranks = runs[i].graph.groups().front().devices.size();
      const double passes = texts[i].find("all_reduce") != std::string::npos ? 2 : 1;
      for (const ExecutionResult& result : {message, results[i + 1], results[i + 2]}) {
        CHECK(result.total == Approx(results[i + 1].total).epsilon(1e-4));
        REQUIRE(result.bound.has_value());
        CHECK(result.bound->seconds <= result.total * (1 + 1e-9));
        for (const DeviceId device : runs[i].graph.groups().front().devices) {
          const double each = passes * (static_cast<double>(ranks) - 1) / static_cast<double>(ranks) * 1e8;
          CHECK(result.totals.sent[static_cast<std::size_t>(device)] == Approx(each).epsilon(1e-9));
          CHECK(result.totals.received[static_cast<std::size_t>(device)] == Approx(each).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("hierarchical collectives run rings in every node at once", "[rings]") {
  // 4 nodes of 4 GPUs, all pairs in a node joined at 20 GB/s, 12.5 GB/s a node to the others: 6 rings in the node, 60
  // GB/s.
  const Cluster cluster = testing::platform("p100_cluster");
  std::vector<Run> runs;
  for (const int rings : {0, 1})
    for (const CollectiveLevel level : {CollectiveLevel::message, CollectiveLevel::flow})
      runs.push_back(run_of(
          first(16),
          {.algorithm = CollectiveAlgorithm::hierarchical, .level = level, .bytes = Bytes(1e9), .rings = rings}));
  const std::vector<ExecutionResult> results = simulate(cluster, runs);
  CHECK(results[0].total == Approx(results[1].total).epsilon(1e-3));
  CHECK(results[2].total == Approx(results[3].total).epsilon(1e-3));
  // The stages in the nodes move 2 x 3/4 of the vector, at 60 instead of 20 GB/s.
  CHECK(results[3].total - results[1].total == Approx(1.5 * 1e9 * (1 / 20e9 - 1 / 60e9)).epsilon(1e-3));
  for (const ExecutionResult& result : results)
    CHECK(std::accumulate(result.totals.sent.begin(), result.totals.sent.end(), 0.0) == Approx(30e9).epsilon(1e-9));
}

TEST_CASE("rings through nodes of unequal size use the cards of the smallest, over NVLink in each", "[rings]") {
  // 8 and 4 GPUs, 2 of whose cards of 12.5 GB/s the smaller node has: 2 x 11/12 x 1 GB / 25 GB/s = 73.3 ms, and
  // latencies. In rank order GPUs 3 and 4 are joined over PCIe only, which would take 116 ms.
  const Cluster cluster = described("{name: dgx1_v100_cluster, nodes: 2}");
  const std::vector<ExecutionResult> results =
      simulate(cluster, {run_of(first(12), {.algorithm = CollectiveAlgorithm::multi_ring, .bytes = Bytes(1e9)})});
  CHECK(results[0].total > 73.3e-3);
  CHECK(results[0].total < 78e-3);
}

TEST_CASE("how ranks are dealt to nodes does not matter to what goes node by node", "[rings]") {
  const Cluster cluster = described("{name: p5_48xlarge, nodes: 3}");
  std::vector<DeviceId> in_blocks, in_turn;
  for (int node = 0; node < 3; ++node)
    for (int gpu = 0; gpu < 3; ++gpu) {
      in_blocks.push_back(8 * node + gpu);
      in_turn.push_back(8 * gpu + node);
    }
  const auto check = [&](CollectiveOp op, CollectiveAlgorithm algorithm) {
    CAPTURE(to_string(op), to_string(algorithm));
    const Collective collective{.op = op, .algorithm = algorithm, .bytes = Bytes(1e8)};
    const auto results = simulate(cluster, {run_of(in_blocks, collective), run_of(in_turn, collective)});
    CHECK(results[1].total == Approx(results[0].total).epsilon(1e-9));
  };
  using A = CollectiveAlgorithm;
  for (const A algorithm : {A::multi_ring, A::hierarchical, A::automatic, A::nccl})
    check(CollectiveOp::all_reduce, algorithm);
  check(CollectiveOp::all_to_all, A::pairwise);
}

TEST_CASE("closed forms of several nodes add up what their rounds take", "[rings]") {
  // 3 nodes of 8 GPUs with 4 cards of 12.5 GB/s: 2 x 23/24 x 100 MB / 50 GB/s, and twice the latencies of a block's
  // way.
  const Cluster cluster = described("{name: p4d, nodes: 3}");
  for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::multi_ring, CollectiveAlgorithm::hierarchical}) {
    std::vector<Run> runs;
    for (const CollectiveLevel level : {CollectiveLevel::flow, CollectiveLevel::closed_form})
      runs.push_back(run_of(first(24), {.algorithm = algorithm, .level = level, .bytes = Bytes(1e8)}));
    const std::vector<ExecutionResult> results = simulate(cluster, runs);
    CHECK(results[1].total == Approx(results[0].total).epsilon(1e-6));
    if (algorithm == CollectiveAlgorithm::multi_ring) CHECK(results[0].total == Approx(4.149e-3).epsilon(1e-3));
  }
}

TEST_CASE("one ring goes where links are, and so many carry their part", "[rings]") {
  // In the order 0, 1, 5, 4 of the P100s all are neighbours; in the order 0, 5, 1, 4 a ring in rank order would cross
  // PCIe twice. Both are the same square of NVLinks, which carries one ring each way. All 8 GPUs carry four rings of 20
  // GB/s.
  const Cluster cluster = testing::platform("dgx1_p100");
  const auto device = [&](const std::string& name) {
    for (std::size_t d = 0; d < cluster.devices.size(); ++d)
      if (cluster.devices[d].name == name) return static_cast<DeviceId>(d);
    throw std::runtime_error(name);
  };
  const std::vector<DeviceId> good{device("gpu-0"), device("gpu-1"), device("gpu-5"), device("gpu-4")};
  const std::vector<DeviceId> bad{device("gpu-0"), device("gpu-5"), device("gpu-1"), device("gpu-4")};
  std::vector<Run> runs;
  for (const auto& group : {good, bad})
    for (const int rings : {1, 2, 0}) runs.push_back(run_of(group, {.bytes = Bytes(1e9), .rings = rings}));
  for (const int rings : {1, 2, 3, 4, 0}) runs.push_back(run_of(first(8), {.bytes = Bytes(1e9), .rings = rings}));
  const std::vector<ExecutionResult> results = simulate(cluster, runs);
  const auto time = [](double ranks, double bandwidth) { return 2 * (ranks - 1) * (3.4e-6 + 1e9 / ranks / bandwidth); };
  const double expected[] = {time(4, 20e9), time(4, 40e9), time(4, 40e9), time(4, 20e9), time(4, 40e9), time(4, 40e9),
                             time(8, 20e9), time(8, 40e9), time(8, 60e9), time(8, 80e9), time(8, 80e9)};
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i);
    CHECK(results[i].total == Approx(expected[i]).epsilon(1e-6));
  }
  CHECK_THROWS_WITH(simulate(cluster, one_collective(first(8), {.bytes = Bytes(1e9), .rings = 5})),
                    Catch::Contains("5 rings are more than carry anything over the links of 8 ranks: at most 4"));
}

TEST_CASE("switches and stars, and rings across nodes, are left with one ring", "[rings]") {
  CHECK(rings_of("dgx2", 16) == 0);
  CHECK(rings_of("dgx_a100", 8) == 0);
  CHECK(rings_of("dgx_h100", 8) == 0);
  CHECK(rings_of("dgx_h100_pod_4", 8) == 0);
  CHECK(rings_of("dgx_h100_pod_4", 32) == 0);
  CHECK(rings_of("k80_server", 8) == 0);
  CHECK(rings_of("skylake_10gbe", 8) == 0);
  CHECK(rings_of("ideal_star_1024", 8) == 0);
  CHECK(rings_of("dgx1_p100", 2) == 0);
  CHECK(rings_of("dgx1_p100", 8) == 4);
  CHECK(rings_of("p100_cluster", 4) == 6);
}

}  // namespace epocast::collective_rings_test
