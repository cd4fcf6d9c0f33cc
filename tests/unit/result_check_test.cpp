// A result that cannot be true says so. No link carries more than 100 % of its capacity, and no iteration is shorter
// than its lower bound; what was not simulated, although it may contend, cannot be vouched for.
#include <catch2/catch.hpp>

#include <numeric>
#include <string>

#include "sim/result_check.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::result_check_test {

using Catch::Contains;
using testing::simulate;

namespace {

ExecutionResult result_of(double utilization, double iteration, double bound) {
  ExecutionResult result;
  result.iteration = iteration;
  result.metrics.max_link_utilization = utilization;
  result.metrics.busiest_link = "link-7";
  result.bound = CycleBound{.seconds = bound, .tasks = {}, .lags = {}, .durations = {}};
  return result;
}

/// Two devices exchange 1 GB both by a collective and by transfers, at the same time: 1 GB/s each way for all. By ring,
/// an all-reduce of 1 GB on two ranks sends 1 GB from each.
CyclicTaskGraph both_at_once(CollectiveLevel level) {
  CyclicTaskGraph graph;
  const GroupId ranks = graph.add_group("ranks", {0, 1});
  const GroupId first = graph.add_group("first", {0}), second = graph.add_group("second", {1});
  const QueueId queue = graph.add_queue("collectives", ranks, QueueRole::communication, Discipline::program_order);
  const QueueId sends = graph.add_queue("sends", first, QueueRole::communication, Discipline::program_order);
  graph.collective(queue, {.level = level, .group = ranks, .bytes = Bytes(1e9)}, {"all-reduce", ""});
  graph.transfer(first, sends, {first, second, Bytes(1e9)}, {"send", ""});
  return graph;
}

}  // namespace

TEST_CASE("results that can be true raise no doubts", "[result]") {
  CHECK(doubts_about(result_of(0.7, 1, 0.9), false).empty());
  CHECK(doubts_about(result_of(1 + 1e-9, 1, 1 + 1e-9), false).empty());  // rounding
  ExecutionResult unbounded = result_of(1, 1, 2);
  unbounded.bound.reset();
  CHECK(doubts_about(unbounded, false).empty());
}

TEST_CASE("results that cannot be true raise doubts", "[result]") {
  const auto busy = doubts_about(result_of(1.04, 1, 0.9), false);
  REQUIRE(busy.size() == 1);
  CHECK_THAT(busy.front(), Contains("link-7") && Contains("104.0 %"));
  const auto fast = doubts_about(result_of(0.9, 1.529, 1.594), false);
  REQUIRE(fast.size() == 1);
  CHECK_THAT(fast.front(), Contains("1.529 s") && Contains("1.594 s"));
  CHECK(doubts_about(result_of(1.04, 1.529, 1.594), true).size() == 3);
}

TEST_CASE("an estimate may be below its bound by what it is uncertain by", "[result]") {
  // 0.137427 s +- 0.00014 s beside a bound of 0.137451 s, and a link as busy as that says.
  ExecutionResult estimate = result_of(0.137451 / 0.137427, 0.137427, 0.137451);
  estimate.iteration_ci95 = 0.00014;
  CHECK(doubts_about(estimate, false).empty());
  estimate.iteration_ci95 = 0.00001;
  CHECK(doubts_about(estimate, false).size() == 2);
  // The same to six digits; of a result that is exact, too much.
  ExecutionResult close = result_of(1, 0.137451, 0.1374515);
  CHECK(doubts_about(close, false).empty());
  close.exact = true;
  CHECK(doubts_about(close, false).size() == 1);
}

TEST_CASE("a collective that is not simulated beside other traffic makes the result doubtful", "[result]") {
  // Device 0 sends 2 GB in an iteration at 1 GB/s: 2 s. The closed form overlaps them in 1 s: 200 % of the link.
  const testing::Star star(2, 1e9, 0);
  const auto run = [&](CollectiveLevel level) {
    return simulate(star.cluster(), both_at_once(level), {.iterations = 10});
  };
  const ExecutionResult wrong = run(CollectiveLevel::closed_form);
  CHECK(wrong.iteration == Approx(1));
  CHECK(wrong.metrics.max_link_utilization == Approx(2));
  REQUIRE(wrong.doubts.size() == 2);
  CHECK_THAT(wrong.doubts[0], Contains("closed_form") && Contains("collective.level: auto or flow"));
  CHECK_THAT(wrong.doubts[1], Contains("200.0 %"));
  CHECK_FALSE(wrong.exact);
  for (const CollectiveLevel level : {CollectiveLevel::automatic, CollectiveLevel::flow, CollectiveLevel::message}) {
    const ExecutionResult right = run(level);
    CHECK(right.iteration == Approx(2));
    CHECK(right.doubts.empty());
    CHECK(right.exact);
  }
}

TEST_CASE("a link that bounds each flow alone is never too busy", "[result]") {
  // Two flows of 1 GB over a backbone on which each may have 1 GB/s: 1 s.
  const testing::TemporaryPlatform platform(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="test_backbone" routing="Full">
    <prop id="epocast.device_model" value="synthetic"/>
    <prop id="epocast.memory" value="16 GB"/>
    <prop id="epocast.memory_bandwidth" value="500 GB/s"/>
    <cluster id="c" prefix="d" radical="0-3" suffix="" speed="1Tf" bw="2GBps" lat="0us"
             sharing_policy="SPLITDUPLEX" bb_bw="1GBps" bb_lat="0us" bb_sharing_policy="FATPIPE"/>
  </zone>
</platform>
)");
  CyclicTaskGraph graph;
  const GroupId from = graph.add_group("from", {0, 1}), to = graph.add_group("to", {2, 3});
  graph.transfer(from, QueueId::none, {from, to, Bytes(1e9)}, {"send", ""});
  const ExecutionResult result = simulate(platform.cluster(), graph, {.iterations = 10});
  CHECK(result.iteration == Approx(1));
  CHECK(result.metrics.max_link_utilization == Approx(0.5));
  CHECK(result.doubts.empty());
}

TEST_CASE("a run that ends before it is steady is exact, and no faster than its bound", "[result]") {
  // Work of 2 s an iteration beside a chain of twenty tasks of 1 s, each on a queue of its own: iteration k ends at
  // max(19 + k, 2 k) s. The first 19 follow each other by 1 s, and take 38 s.
  CyclicTaskGraph graph;
  const GroupId one = graph.add_group("one", {0});
  const auto queue = [&](const std::string& name) {
    return graph.add_queue(name, one, QueueRole::compute, Discipline::program_order);
  };
  graph.compute(queue("work"), Seconds(2), {"work", ""});
  for (int k = 0; k < 20; ++k) {
    const TaskId task = graph.compute(queue("chain " + std::to_string(k)), Seconds(1), {"chain", std::to_string(k)});
    if (k > 0) graph.after(TaskId(CyclicTaskGraph::index(task) - 1), task);
  }
  const testing::Star star(1, 1e9, 0);
  const ExecutionResult result = simulate(star.cluster(), graph, {.iterations = 19});
  CHECK(result.total == Approx(38));
  REQUIRE(result.bound);
  CHECK(result.bound->seconds == Approx(2));
  CHECK(result.iteration == Approx(2));
  CHECK(result.doubts.empty());
  CHECK(result.exact);
}

}  // namespace epocast::result_check_test
