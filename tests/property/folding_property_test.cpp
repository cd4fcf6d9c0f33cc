// One rank stands for all of its group where nothing tells them apart: a folded run gives what the run of all ranks
// gives, on random loops of stages, each on a grid of ranks, with messages between stages and collectives along axes.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/property/random_network.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::folding_property_test {

namespace {

constexpr int kLoops = 120;

/// A random training loop over the first `devices` devices of a cluster.
class StagedLoop {
 public:
  StagedLoop(std::uint64_t seed, int devices) : random_(seed) {
    const int stages = 1 << below(3);
    ranks_ = static_cast<std::uint32_t>(devices / stages);
    const std::uint32_t inner = ranks_ % 2 == 0 && below(3) > 0 ? 2 : ranks_ % 4 == 0 && below(2) > 0 ? 4 : ranks_;
    axes_ = {{1, inner}, {inner, ranks_ / inner}, {1, ranks_}};
    const bool stages_are_neighbours = below(3) == 0;
    for (int s = 0; s < stages; ++s) {
      std::vector<DeviceId> all;
      for (int r = 0; r < static_cast<int>(ranks_); ++r)
        all.push_back(static_cast<DeviceId>(stages_are_neighbours ? r * stages + s : s * static_cast<int>(ranks_) + r));
      stages_.push_back(graph_.add_group("stage " + std::to_string(s), all));
      const auto discipline = below(4) == 0 ? Discipline::fifo : Discipline::program_order;
      compute_.push_back(graph_.add_queue("compute", stages_.back(), QueueRole::compute, discipline));
      network_.push_back(graph_.add_queue("network", stages_.back(), QueueRole::communication, Discipline::fifo));
    }
    const int micro_batches = 1 + below(3);
    for (int m = 0; m < micro_batches; ++m) {
      std::optional<TaskId> before;
      for (int s = 0; s < stages; ++s) before = add_pass(s, before);
      for (int s = stages; s-- > 0;) before = add_pass(s, before);
      ends_.push_back(*before);
    }
    for (const TaskId end : ends_)
      for (const TaskId start : starts_) graph_.after(end, start, 1);
  }

  const CyclicTaskGraph& graph() const { return graph_; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }

  /// What a stage does with a micro-batch that it gets from where `before` was done. Returns the last task.
  TaskId add_pass(int s, std::optional<TaskId> before) {
    const auto at = static_cast<std::size_t>(s);
    const std::string name = std::to_string(graph_.tasks().size());
    if (before && graph_.task(*before).ranks != stages_[at]) {
      const TaskId message =
          graph_.transfer(stages_[at], QueueId::none,
                          {graph_.task(*before).ranks, stages_[at], Bytes(1e6 * between(0, 9))}, {"activations", name});
      graph_.after(*before, message);
      before = message;
    }
    const TaskId compute = graph_.compute(compute_[at], Seconds(1e-3 * between(0.1, 2)), {"forward", name});
    if (!before)
      starts_.push_back(compute);
    else
      graph_.after(*before, compute);
    if (below(3) == 0) return compute;
    const Axis axis = axes_[static_cast<std::size_t>(below(3))];
    if (axis.extent == 1) return compute;
    const CollectiveAlgorithm algorithms[] = {CollectiveAlgorithm::ring, CollectiveAlgorithm::halving_doubling,
                                              CollectiveAlgorithm::recursive_doubling, CollectiveAlgorithm::automatic};
    const CollectiveOp ops[] = {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter};
    const CollectiveOp op = ops[below(3)];
    const CollectiveAlgorithm algorithm = algorithms[below(4)];
    const bool side = below(2) == 0;  // hidden behind what comes next, until the end of the iteration
    const TaskId collective =
        graph_.collective_along(axis, below(2) == 0 ? network_[at] : QueueId::none,
                                Collective{.op = op,
                                           .algorithm = supports(algorithm, op) ? algorithm : CollectiveAlgorithm::ring,
                                           .level = CollectiveLevel::flow,
                                           .group = stages_[at],
                                           .bytes = Bytes(1e6 * between(0.1, 7)),
                                           .gamma = below(2) * 1e-10},
                                {"all-reduce", name});
    graph_.after(compute, collective);
    if (side) ends_.push_back(collective);
    return side ? compute : collective;
  }

  std::mt19937_64 random_;
  std::uint32_t ranks_ = 1;
  std::vector<Axis> axes_;
  CyclicTaskGraph graph_;
  std::vector<GroupId> stages_;
  std::vector<QueueId> compute_, network_;
  std::vector<TaskId> starts_, ends_;
};

/// Runs every loop folded and unfolded. Returns how many folded.
int check_loops(const Cluster& cluster, int devices) {
  std::vector<StagedLoop> loops;
  for (std::uint64_t k = 0; k < kLoops; ++k) loops.emplace_back(1000 + k, devices);
  const auto packed = testing::on_engines(cluster, kLoops, [&](int job, SimEngine& engine) {
    const CyclicTaskGraph& graph = loops[static_cast<std::size_t>(job)].graph();
    return testing::execute_packed(
        cluster, engine,
        {{graph, {.iterations = 12, .exact = true, .fold = false}}, {graph, {.iterations = 12, .exact = true}}});
  });
  int folded = 0;
  for (std::size_t k = 0; k < kLoops; ++k) {
    INFO("loop " << k);
    const auto results = testing::unpack(packed[k]);
    const ExecutionResult &whole = results.at(0), &one = results.at(1);
    REQUIRE_FALSE(whole.folded);
    if (!one.folded) continue;
    ++folded;
    CHECK(one.total == Approx(whole.total).epsilon(1e-9));
    CHECK(one.metrics.bytes == Approx(whole.metrics.bytes).epsilon(1e-9));
    CHECK(one.metrics.max_link_utilization == Approx(whole.metrics.max_link_utilization).epsilon(1e-9));
    CHECK(one.metrics.compute == Approx(whole.metrics.compute).epsilon(1e-9));
    CHECK(one.metrics.communication == Approx(whole.metrics.communication).epsilon(1e-9));
    CHECK(one.metrics.exposed_communication == Approx(whole.metrics.exposed_communication).epsilon(1e-8).margin(1e-12));
    for (std::size_t d = 0; d < whole.totals.sent.size(); ++d) {
      CHECK(one.totals.sent[d] == Approx(whole.totals.sent[d]).epsilon(1e-9));
      CHECK(one.totals.received[d] == Approx(whole.totals.received[d]).epsilon(1e-9));
    }
    for (std::size_t l = 0; l < whole.totals.on_link.size(); ++l)
      CHECK(one.totals.on_link[l] == Approx(whole.totals.on_link[l]).epsilon(1e-9));
  }
  return folded;
}

}  // namespace

TEST_CASE("stages of ranks fold on a star", "[execution][folding][property]") {
  const testing::Star star(16, 1e9, 20e-6);
  CHECK(check_loops(star.cluster(), 16) > kLoops / 3);  // or else little has been tested
}

TEST_CASE("stages of ranks fold where nodes share links", "[execution][folding][property]") {
  CHECK(check_loops(testing::platform("dgx_h100_pod_4"), 32) > kLoops / 4);
}

TEST_CASE("stages of ranks fold behind uplinks as fast as their ports together", "[execution][folding][property]") {
  // Leaves of three and of five devices: only that the uplinks hold nobody up makes their devices alike.
  std::string points, links, routes;
  for (int leaf = 0, device = 0; leaf < 2; ++leaf) {
    const int devices = leaf == 0 ? 3 : 5;
    for (int k = 0; k < devices; ++k, ++device) {
      points += fmt::format(R"(<host id="d{}" speed="1Tf"/>)", device);
      links +=
          fmt::format(R"(<link id="port{}" bandwidth="3GBps" latency="9us" sharing_policy="SPLITDUPLEX"/>)", device);
      routes += fmt::format(R"(<route src="d{0}" dst="leaf{1}"><link_ctn id="port{0}" direction="UP"/></route>)",
                            device, leaf);
    }
    points += fmt::format(R"(<router id="leaf{}"/>)", leaf);
    links += fmt::format(R"(<link id="uplink{}" bandwidth="{}GBps" latency="0us" sharing_policy="SPLITDUPLEX"/>)", leaf,
                         3 * devices);
    routes +=
        fmt::format(R"(<route src="leaf{0}" dst="spine"><link_ctn id="uplink{0}" direction="UP"/></route>)", leaf);
  }
  points += R"(<router id="spine"/>)";
  const testing::TemporaryPlatform tree(testing::network_xml(points, links, routes));
  CHECK(check_loops(tree.cluster(), 8) > kLoops / 3);
}

}  // namespace epocast::folding_property_test
