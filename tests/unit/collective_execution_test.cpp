// A collective takes the same time on an idle star however closely one looks: message by message, as a few flows, or by
// its formula. Per round the flow level charges the largest latency and reduction and then moves all bytes at once,
// which is exact as long as all ranks go through the rounds in step; 0.01 % is what issue 2 asks for.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "strategies/register.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::collective_execution_test {

using testing::Run;
using testing::simulate;

namespace {

constexpr double kTolerance = 1e-4;

struct Case {
  CollectiveOp op;
  CollectiveAlgorithm algorithm;
  int ranks;
  double gamma;

  std::string text() const {
    return fmt::format("{} {} P={} gamma={}", to_string(algorithm), to_string(op), ranks, gamma);
  }
};

/// All that are supported, for group sizes around powers of two.
std::vector<Case> cases() {
  std::vector<Case> out;
  for (const std::string& algorithm : collective_algorithm_names())
    for (const std::string& op : collective_op_names())
      for (const int ranks : {2, 3, 4, 7, 8, 16, 32, 33})
        for (const double gamma : {0.0, 1e-10})
          if (supports(parse_collective_algorithm(algorithm), parse_collective_op(op)))
            out.push_back({parse_collective_op(op), parse_collective_algorithm(algorithm), ranks, gamma});
  return out;
}

CyclicTaskGraph one_collective(const Case& c, CollectiveLevel level, double bytes) {
  std::vector<DeviceId> devices(static_cast<std::size_t>(c.ranks));
  std::iota(devices.begin(), devices.end(), 0);
  CyclicTaskGraph graph;
  const GroupId group = graph.add_group("ranks", devices);
  const QueueId queue = graph.add_queue("queue", group, QueueRole::communication, Discipline::program_order);
  graph.collective(queue, {c.op, c.algorithm, level, group, Bytes(bytes), c.gamma}, {"collective", ""});
  return graph;
}

/// Times of all cases [s], at one level.
std::vector<ExecutionResult> times(const Cluster& cluster, const std::vector<Case>& all, CollectiveLevel level,
                                   double bytes) {
  std::vector<Run> runs;
  for (const Case& c : all) runs.push_back({one_collective(c, level, bytes), {.iterations = 1, .fold = false}});
  return simulate(cluster, runs);
}

double relative_difference(double a, double b) { return std::abs(a - b) / std::max(std::abs(a), std::abs(b)); }

/// Compares the levels of all cases; the largest difference goes into the report.
void compare_levels(const Cluster& cluster, double bytes) {
  const std::vector<Case> all = cases();
  const auto message = times(cluster, all, CollectiveLevel::message, bytes);
  const auto flow = times(cluster, all, CollectiveLevel::flow, bytes);
  const auto closed = times(cluster, all, CollectiveLevel::closed_form, bytes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].text() << ", " << bytes << " B");
    CHECK(relative_difference(message[i].total, flow[i].total) < kTolerance);
    if (closed_form_is_exact(all[i].op, all[i].algorithm, all[i].ranks))
      CHECK(relative_difference(message[i].total, closed[i].total) < kTolerance);
    else
      CHECK(closed[i].total >= message[i].total * (1 - kTolerance));  // approximates from above
    // All levels move the same bytes from and to the same devices.
    for (std::size_t d = 0; d < message[i].totals.sent.size(); ++d) {
      REQUIRE(flow[i].totals.sent[d] == Approx(message[i].totals.sent[d]).epsilon(1e-12));
      REQUIRE(closed[i].totals.sent[d] == Approx(message[i].totals.sent[d]).epsilon(1e-12));
      REQUIRE(flow[i].totals.received[d] == Approx(message[i].totals.received[d]).epsilon(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("levels agree for large vectors, where bandwidth rules", "[collective][executor]") {
  const testing::Star star(33, 1e9, 5e-6);
  compare_levels(star.cluster(), 64e6);
}

TEST_CASE("levels agree for small vectors, where latency rules", "[collective][executor]") {
  const testing::Star star(33, 1e9, 5e-6);
  compare_levels(star.cluster(), 10e3);
}

TEST_CASE("levels agree with four ranks in a node", "[collective][executor]") {
  // Nodes matter to some algorithms only; on a star their times are formulas all the same.
  const testing::Star star(32, 1e9, 5e-6);
  Cluster cluster = star.cluster();
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) cluster.devices[d].node = "node" + std::to_string(d / 4);
  std::vector<Case> all = cases();
  std::erase_if(all, [](const Case& c) {
    const bool heeds_nodes = c.algorithm == CollectiveAlgorithm::hierarchical ||
                             c.algorithm == CollectiveAlgorithm::multi_ring || c.op == CollectiveOp::all_to_all;
    return !heeds_nodes || c.ranks % 4 != 0;
  });
  REQUIRE_FALSE(all.empty());
  const auto message = times(cluster, all, CollectiveLevel::message, 64e6);
  const auto flow = times(cluster, all, CollectiveLevel::flow, 64e6);
  const auto closed = times(cluster, all, CollectiveLevel::closed_form, 64e6);
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].text());
    CHECK(relative_difference(message[i].total, flow[i].total) < kTolerance);
    CHECK(relative_difference(message[i].total, closed[i].total) < kTolerance);
  }
}

TEST_CASE("formulas are exact for ring and halving-doubling at powers of two", "[collective]") {
  for (const int ranks : {2, 4, 8, 16, 32, 1024})
    for (const auto algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::halving_doubling})
      CHECK(closed_form_is_exact(CollectiveOp::all_reduce, algorithm, ranks));
}

TEST_CASE("a ring of 1024 ranks reduces 100 MiB in 214.6254 ms", "[collective][executor]") {
  // 2 (P-1) (alpha + n / P / bandwidth) = 2046 x (2.5 us + 102400 B / 1 GB/s) = 5.115 ms + 209.5104 ms.
  const Cluster cluster = testing::platform("ideal_star_1024");
  const ConfigNode options = ConfigNode::load_text("bytes: 100 MiB", "options");
  const auto strategy = builtin_strategies().make("collective_benchmark", options, options);
  std::vector<DeviceId> workers(1024);
  std::iota(workers.begin(), workers.end(), 0);
  std::vector<Run> runs;
  for (const CollectiveLevel level :
       {CollectiveLevel::flow, CollectiveLevel::closed_form, CollectiveLevel::automatic}) {
    const StrategyContext context{cluster, workers, 1024, {}, {.algorithm = CollectiveAlgorithm::ring, .level = level}};
    for (const bool fold : {false, true})
      runs.push_back({strategy->compile(context).graph, {.iterations = 1, .fold = fold}});
  }
  for (const ExecutionResult& result : simulate(cluster, runs)) {
    CHECK(result.total == Approx(0.2146254).epsilon(1e-9));
    CHECK(result.metrics.bytes == Approx(1024 * 2046 * 102400.0));
  }
}

}  // namespace epocast::collective_execution_test
