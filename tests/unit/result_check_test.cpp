// A result that cannot be true says so. No link carries more than 100 % of its capacity, and no iteration is shorter
// than its lower bound; what was not simulated, although it may contend, cannot be vouched for.
#include <catch2/catch.hpp>

#include <numeric>

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

}  // namespace epocast::result_check_test
