// Windows of slowness: what is under way when one begins or ends is done at both speeds, exactly. Network: a star of 1
// GB/s links, so a message of n MB alone takes n ms.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>

#include "sim/error.hpp"
#include "tests/support/run_study.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::disturbance_test {

using testing::interval;
using testing::simulate;
using testing::Star;

namespace {

constexpr double kMs = 1e-3, kMB = 1e6, kNever = std::numeric_limits<double>::infinity();

/// Two workers of 4 ms a step; with `barrier` each step waits for both.
CyclicTaskGraph two_workers(bool barrier) {
  CyclicTaskGraph graph;
  const GroupId both = graph.add_group("both", {0, 1}), one = graph.add_group("one", {0});
  const QueueId own = graph.add_queue("own", both, QueueRole::compute, Discipline::program_order);
  const TaskId work = graph.compute(own, Seconds(4 * kMs), {"work", ""});
  if (barrier) {
    const TaskId join = graph.compute_for(one, QueueId::none, Seconds(0), {"join", ""});
    graph.after(work, join);
    graph.after(join, work, 1);
  }
  return graph;
}

ExecutionResult run(const CyclicTaskGraph& graph, std::int64_t iterations, std::vector<Disturbance> slow,
                    std::vector<Disturbance> links = {}, bool exact = true) {
  const Star star(3, 1e9, 0);
  return simulate(star.cluster(), graph,
                  {.iterations = iterations,
                   .exact = exact,
                   .slow_devices = std::move(slow),
                   .slow_links = std::move(links),
                   .record_waiting = true,
                   .record_timeline = exact});
}

}  // namespace

TEST_CASE("windows come and go, and come again", "[disturbance]") {
  const SlowWindow once{.from = 2, .until = 5, .factor = 3};
  CHECK(once.factor_at(1.9) == 1);
  CHECK(once.factor_at(2) == 3);
  CHECK(once.factor_at(5) == 1);
  CHECK(once.next_change(0) == 2);
  CHECK(once.next_change(2) == 5);
  CHECK(once.next_change(5) == kNever);
  const SlowWindow often{.from = 2, .until = 5, .factor = 3, .period = 10};
  CHECK(often.factor_at(12) == 3);
  CHECK(often.factor_at(15) == 1);
  CHECK(often.factor_at(1e6 + 3) == 3);
  CHECK(often.next_change(5) == 12);
  CHECK(often.next_change(1e6 + 3) == 1e6 + 5);
}

TEST_CASE("work is integrated over windows", "[disturbance]") {
  // Full pace but for [2, 5) (a third of it) and [8, 9) (none). 7 s of work from 1: 1 s until 2, 1 s until 5, 3 s until
  // 8, none until 9, and 2 s more: 11.
  const Pace pace({{1, {2, 5, 3, 0}}, {1, {8, 9, kNever, 0}}}, 2);
  CHECK(pace.end_of(1, 1, 7) == Approx(11));
  CHECK(pace.end_of(1, 8.5, 0) == 9);
  CHECK(pace.end_of(0, 1, 7) == 8);  // another device
  CHECK(pace.resumes(1, 8.25) == 9);
  CHECK(pace.resumes(1, 7) == 7);
  CHECK(pace.last_change() == 9);
  const Pace stopped({{0, {3, kNever, kNever, 0}}}, 1);
  CHECK(stopped.end_of(0, 1, 2) == 3);
  CHECK(stopped.end_of(0, 1, 2.5) == kNever);
  CHECK(stopped.resumes(0, 4) == kNever);
  // Half pace for 1 s of every 2 s: 3/4 on average. 300 s of work end after 400 s.
  CHECK(Pace({{0, {1, 2, 2, 2}}}, 1).end_of(0, 0, 300) == Approx(400));
}

TEST_CASE("stops that together leave no gap last for ever", "[disturbance]") {
  // Of every 0.5 s, [0.1, 0.4) and [0.4, 0.6): 0.1 s of work is done, and no more. What else changes does not matter.
  const SlowWindow one{0.1, 0.4, kNever, 0.5}, other{0.4, 0.6, kNever, 0.5}, slow{0.1, 0.3, 3, 0.5};
  const SlowWindow for_ever{.from = 0.1, .factor = kNever};
  for (const Pace& pace : {Pace({{0, one}, {0, other}}, 1), Pace({{0, for_ever}, {0, slow}}, 1),
                           Pace({{0, slow}, {0, one}, {0, for_ever}}, 1)}) {
    CHECK(pace.end_of(0, 0, 0.05) == Approx(0.05));
    CHECK(pace.end_of(0, 0, 0.2) == kNever);
    CHECK(pace.resumes(0, 0.2) == kNever);
    CHECK(pace.work_between(0, 0, 1000) == Approx(0.1));
    CHECK(pace.halts(0) == Approx(0.1));
    CHECK(pace.last_change() == Approx(0.1));
  }
  // Up to 0.55 there is a gap of 0.05 s in each 0.5 s: 1 s of work is the first 0.1 s and 18 gaps, up to 0.6 + 17 x
  // 0.5.
  const Pace gaps({{0, one}, {0, {0.4, 0.55, kNever, 0.5}}}, 1);
  CHECK(gaps.end_of(0, 0, 0.99) == Approx(9.09));
  CHECK(gaps.resumes(0, 0.2) == Approx(0.55));
  CHECK(gaps.last_change() == kNever);
}

TEST_CASE("a collective that nothing else contends with goes at the pace of slow links", "[disturbance]") {
  // A ring of two ranks sends half of 8 MB each way, twice: 8 ms; over worker 1's links of a quarter, 32.
  const auto ring = [](CollectiveLevel level) {
    CyclicTaskGraph graph;
    const GroupId both = graph.add_group("both", {0, 1});
    graph.collective(graph.add_queue("queue", both, QueueRole::communication, Discipline::program_order),
                     {.level = level, .group = both, .bytes = Bytes(8 * kMB)}, {"all-reduce", ""});
    return graph;
  };
  const CyclicTaskGraph graph = ring(CollectiveLevel::automatic);
  CHECK(run(graph, 1, {}).total == Approx(8 * kMs));
  CHECK(run(graph, 1, {}, {{1, {.factor = 4}}}).total == Approx(32 * kMs));
  // Both workers' links lie on each way: it is as slow as one of them is.
  CHECK(run(graph, 1, {}, {{0, {.factor = 4}}, {1, {.factor = 4}}}).total == Approx(32 * kMs));
  // Twice as slow and four times at once are eight times.
  CHECK(run(graph, 1, {}, {{1, {.factor = 2}}, {1, {.factor = 4}}}).total == Approx(64 * kMs));
  // A formula that is asked for does not notice, and says so.
  const ExecutionResult formula = run(ring(CollectiveLevel::closed_form), 1, {}, {{1, {.factor = 4}}});
  CHECK(formula.total == Approx(8 * kMs));
  REQUIRE(formula.doubts.size() >= 1);
  CHECK(formula.doubts.front().find("slow links") != std::string::npos);
}

TEST_CASE("a computation under way slows down and speeds up", "[disturbance]") {
  // Worker 1 is 4 times slower in [6, 14) ms: its second step has done 2 ms, does 2 ms in the window, ends at 14.
  const auto result = run(two_workers(false), 3, {{1, {6 * kMs, 14 * kMs, 4, 0}}});
  CHECK(interval(two_workers(false), result, "work", 1, 1).end == Approx(14 * kMs).margin(1e-12));
  CHECK(interval(two_workers(false), result, "work", 1, 2).end == Approx(18 * kMs).margin(1e-12));
  CHECK(interval(two_workers(false), result, "work", 0, 2).end == Approx(12 * kMs).margin(1e-12));
}

TEST_CASE("a worker that comes back has lost the time it was away", "[disturbance]") {
  // Away in [5, 15) ms: of its second step it has done 1 ms, the other 3 follow from 15 on; everybody waits.
  const auto result = run(two_workers(true), 4, {{1, {5 * kMs, 15 * kMs, kNever, 0}}});
  CHECK(result.total == Approx(26 * kMs).margin(1e-12));
  REQUIRE(result.workers.size() == 2);
  CHECK(result.workers[0].lost == Approx(10 * kMs).margin(1e-12));  // [8, 18)
  CHECK(result.workers[1].lost == Approx(0).margin(1e-12));
  CHECK(result.workers[1].cost_to_others == Approx(10 * kMs).margin(1e-12));
  CHECK(result.workers[1].came_last == 1);
  CHECK(result.workers[0].came_last == 0);
}

TEST_CASE("the loop after a window is extrapolated, the window is not", "[disturbance]") {
  const std::vector<Disturbance> away{{1, {51 * kMs, 77 * kMs, kNever, 0}}};
  const auto exact = run(two_workers(true), 1000, away), extrapolated = run(two_workers(true), 1000, away, {}, false);
  CHECK(exact.total == Approx(4026 * kMs).margin(1e-9));
  CHECK(extrapolated.total == Approx(exact.total).epsilon(1e-12));
  CHECK(extrapolated.iterations_simulated < 50);
  CHECK(extrapolated.exact);
}

TEST_CASE("those who wait for a worker that never returns are in a deadlock", "[disturbance]") {
  std::string message;
  try {
    run(two_workers(true), 100, {{1, {10 * kMs, kNever, kNever, 0}}});
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  INFO(message);
  CHECK(message.find("d1 stands still for ever since 0.01 s, in iteration 3 of 'work'") != std::string::npos);
  CHECK(message.find("'join' waits since 0.012 s for 'work' of rank 1 (d1), to start iteration 3") !=
        std::string::npos);
  CHECK(message.find("'work' of rank 0 (d0) waits since 0.012 s for 'join', to start iteration 4") !=
        std::string::npos);
}

TEST_CASE("where nobody waits for it, the others go on without a worker that never returns", "[disturbance]") {
  const auto result = run(two_workers(false), 100, {{1, {10 * kMs, kNever, kNever, 0}}});
  REQUIRE(result.workers.size() == 2);
  CHECK(result.workers[0].steps == 100);
  CHECK(result.workers[1].steps == 2);
  CHECK(result.workers[1].stopped == Approx(10 * kMs));
  CHECK_FALSE(result.workers[0].stopped);
  CHECK(result.total == Approx(400 * kMs).margin(1e-12));
  CHECK(result.iteration == Approx(400 * kMs / 51));  // of both workers: 102 steps in 400 ms
}

TEST_CASE("a link carries less in its windows", "[disturbance]") {
  // 10 MB from device 0 to 1, 10 ms. The link of 1 is 4 times slower in [4, 12) ms: 4 MB, then 2 MB, then 4 MB: 16 ms.
  // The link of 2 does not matter.
  CyclicTaskGraph graph;
  const GroupId from = graph.add_group("from", {0}), to = graph.add_group("to", {1});
  graph.transfer(from, QueueId::none, {from, to, Bytes(10 * kMB)}, {"send", ""});
  for (const DeviceId whose : {0, 1, 2}) {
    const auto result = run(graph, 1, {}, {{whose, {4 * kMs, 12 * kMs, 4, 0}}});
    CHECK(interval(graph, result, "send").end == Approx((whose == 2 ? 10 : 16) * kMs).margin(1e-9));
    CHECK(result.total == Approx((whose == 2 ? 10 : 16) * kMs).margin(1e-9));  // the window's end is nobody's business
  }
  // Every 10 ms for 2 ms at a quarter: 8.5 MB per 10 ms. 85 MB in 100 ms.
  CyclicTaskGraph longer;
  const GroupId a = longer.add_group("a", {0}), b = longer.add_group("b", {1});
  longer.transfer(a, QueueId::none, {a, b, Bytes(85 * kMB)}, {"send", ""});
  CHECK(run(longer, 1, {}, {{0, {0, 2 * kMs, 4, 10 * kMs}}}).total == Approx(100 * kMs).margin(1e-9));
}

TEST_CASE("a message waits for its sender, whoever asks for it", "[disturbance]") {
  // Device 0 asks for 10 MB of device 1's: 10 ms. If 1 stands still until 12 ms, 22; if 0 does, they arrive all the
  // same.
  CyclicTaskGraph graph;
  const GroupId asks = graph.add_group("asks", {0}), has = graph.add_group("has", {1});
  graph.transfer(asks, QueueId::none, {has, asks, Bytes(10 * kMB)}, {"reply", ""});
  const auto end = [&](DeviceId still) {
    return interval(graph, run(graph, 1, {{still, {0, 12 * kMs, kNever, 0}}}), "reply").end;
  };
  CHECK(end(1) == Approx(22 * kMs).margin(1e-9));
  CHECK(end(0) == Approx(10 * kMs).margin(1e-9));
}

TEST_CASE("a collective starts when none of its members stands still", "[disturbance]") {
  // 8 ms of computing, then three of 10 ms each. Worker 1 is away in [10, 110) ms: the first is under way by then, the
  // others follow from 110 on.
  CyclicTaskGraph graph;
  const GroupId both = graph.add_group("both", {0, 1});
  const QueueId own = graph.add_queue("own", both, QueueRole::compute, Discipline::program_order);
  const QueueId wire = graph.add_queue("wire", both, QueueRole::communication, Discipline::program_order);
  TaskId last = graph.compute(own, Seconds(8 * kMs), {"work", ""});
  for (const char* name : {"first", "second", "third"}) {
    const TaskId sum =
        graph.collective(wire, {.group = both, .bytes = Bytes(1), .measured = Seconds(10 * kMs)}, {name, ""});
    graph.after(last, sum);
    last = sum;
  }
  const auto result = run(graph, 1, {{1, {10 * kMs, 110 * kMs, kNever, 0}}});
  CHECK(interval(graph, result, "first").end == Approx(18 * kMs).margin(1e-12));
  CHECK(result.total == Approx(130 * kMs).margin(1e-12));
  // One of the two is always away.
  const SlowWindow even{0, 1, kNever, 2}, odd{1, 2, kNever, 2};
  CHECK_THROWS_WITH(run(graph, 1, {{0, even}, {1, odd}}),
                    Catch::Contains("stand still in turn, and never work at once"));
}

TEST_CASE("a slow link is as busy as what it carries keeps it", "[disturbance]") {
  // 10 MB at a quarter of 1 GB/s keep worker 1's link busy all the time; a quarter of it those of worker 0.
  CyclicTaskGraph graph;
  const GroupId from = graph.add_group("from", {0}), to = graph.add_group("to", {1});
  graph.transfer(from, QueueId::none, {from, to, Bytes(10 * kMB)}, {"send", ""});
  for (const bool exact : {true, false}) {
    const auto result = run(graph, 3, {}, {{1, {.factor = 4}}}, exact);
    CHECK(result.metrics.max_link_utilization == Approx(1));
    CHECK_THAT(result.metrics.busiest_link, Catch::Contains("link_1_DOWN"));
  }
  // Half pace for 1 ms of every 2 is 3/4: 15 MB in 20 ms.
  CyclicTaskGraph longer;
  const GroupId a = longer.add_group("a", {0}), b = longer.add_group("b", {1});
  longer.transfer(a, QueueId::none, {a, b, Bytes(15 * kMB)}, {"send", ""});
  const auto often = run(longer, 1, {}, {{1, {0, 1 * kMs, 2, 2 * kMs}}});
  CHECK(often.total == Approx(20 * kMs).margin(1e-9));
  CHECK(often.metrics.max_link_utilization == Approx(1));
}

TEST_CASE("slow links are a worker's own and its node's card, whoever else is there", "[disturbance]") {
  // A ring of two sends 100 MB each way over cards of 1 GB/s: 0.1 s, and 0.2 if those of one node carry half.
  for (const int per_node : {1, 2})
    for (const int slowdown : {1, 2}) {
      const ScenarioResult result = testing::run_study(fmt::format(
          "study: cards\nplatform: {{cluster: lab, nodes: 2, devices: {{kind: v100_sxm2_16gb, per_node: {}}}, "
          "inside: {{rate: 10 GB/s, latency: 0 us}}, cards: {{per_node: 1, rate: 1 GB/s, latency: 0 us}}}}\n"
          "workers: {{hosts: [gpu-0-0, gpu-1-0]}}\ndataset: {{samples: 100}}\nstack: ideal\n"
          "collective: {{algorithm: ring}}\nstrategy: {{name: collective_benchmark, bytes: 100 MB}}\n"
          "degraded_links: [{{worker: 0, slowdown: {}}}]\n",
          per_node, slowdown));
      CHECK(result.iteration_s == Approx(0.1 * slowdown));
    }
}

}  // namespace epocast::disturbance_test
