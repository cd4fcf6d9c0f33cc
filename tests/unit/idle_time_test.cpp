// How long communication takes with the network to itself is part of the bound: latency counts as well as bytes.
#include <catch2/catch.hpp>

#include "tests/support/simulate.hpp"

namespace epocast::idle_time_test {

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

/// A device computes for 2 ms, something communicates, and round it goes.
ExecutionResult run(double latency, const std::function<TaskId(CyclicTaskGraph&)>& communicate) {
  const testing::Star star(4, 1e9, latency);
  CyclicTaskGraph graph;
  const GroupId all = graph.add_group("all", {0, 1, 2, 3});
  const TaskId work = graph.compute(graph.add_queue("queue", all, QueueRole::compute, Discipline::fifo),
                                    Seconds(2 * kMs), {"work", ""});
  const TaskId sent = communicate(graph);
  graph.after(work, sent);
  graph.after(sent, work, 1);
  return testing::simulate(star.cluster(), graph);
}

}  // namespace

TEST_CASE("the bound of a loop with a message: its latency and its bytes", "[executor]") {
  // Each rank sends 4 MB to its neighbour, over links of its own: 1 GB/s, so 4 ms and the latency. Nothing contends, so
  // that the bound is the time itself.
  for (const double latency : {0.0, 1 * kMs, 5 * kMs}) {
    INFO("latency " << latency);
    const ExecutionResult result = run(latency, [](CyclicTaskGraph& graph) {
      const GroupId next = graph.add_group("next", {1, 2, 3, 0});
      return graph.transfer(GroupId(0), QueueId::none, {GroupId(0), next, Bytes(4 * kMB)}, {"send", ""});
    });
    REQUIRE(result.bound);
    CHECK(result.bound->seconds == Approx(6 * kMs + latency).margin(1e-9));
    CHECK(result.iteration == Approx(6 * kMs + latency).margin(1e-9));
  }
}

TEST_CASE("the bound of a loop with a collective: the latencies of its steps", "[executor]") {
  // A ring of 4 ranks: 6 steps of 1 MB each, 1 ms and the latency.
  for (const double latency : {0.0, 1 * kMs}) {
    INFO("latency " << latency);
    const ExecutionResult result = run(latency, [](CyclicTaskGraph& graph) {
      return graph.collective(
          QueueId::none,
          {CollectiveOp::all_reduce, CollectiveAlgorithm::ring, CollectiveLevel::flow, GroupId(0), Bytes(4 * kMB), 0},
          {"all-reduce", ""});
    });
    REQUIRE(result.bound);
    CHECK(result.bound->seconds == Approx(2 * kMs + 6 * (1 * kMs + latency)).margin(1e-9));
    CHECK(result.iteration == Approx(2 * kMs + 6 * (1 * kMs + latency)).margin(1e-9));
  }
}

}  // namespace epocast::idle_time_test
