// Computation is slower while its device communicates, and an all-reduce has an overhead. By hand, on two workers that
// compute A for 1 s, then B for 4 s, while an all-reduce that follows A takes 2 s:
//
//   half the speed is lost:  A 0..1, all-reduce 1..3, B 1..6: 2 s at half speed, then 3 s
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <random>

#include "sim/interference.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::interference_test {

using testing::interval;

namespace {

struct Trial {
  explicit Trial(std::optional<Seconds> measured = Seconds(2)) {
    const GroupId both = graph.add_group("workers", {0, 1});
    const QueueId compute = graph.add_queue("compute", both, QueueRole::compute, Discipline::program_order);
    const QueueId wire = graph.add_queue("wire", both, QueueRole::communication, Discipline::fifo);
    const TaskId a = graph.compute(compute, Seconds(1), {"A", ""});
    const TaskId b = graph.compute(compute, Seconds(4), {"B", ""});
    sum = graph.collective(wire, {.group = both, .bytes = Bytes(1e9), .measured = measured}, {"sum", ""});
    graph.after(a, sum);
    graph.after(sum, a, 1);
    graph.after(b, a, 1);
  }
  std::vector<ExecutionResult> run(ExecutionOptions options) const {
    const testing::Star star(2, 1e9, 0);
    options.iterations = 6;
    options.exact = options.record_timeline = true;
    ExecutionOptions unfolded = options;
    unfolded.fold = false;
    return testing::simulate(star.cluster(), {{graph, options}, {graph, unfolded}});
  }

  CyclicTaskGraph graph;
  TaskId sum{};
};

}  // namespace

TEST_CASE("computation loses its share while an all-reduce is under way, and only then") {
  const Trial trial;
  for (const ExecutionResult& result : trial.run({.costs = {.interference = 0.5}})) {
    for (const int iteration : {0, 3}) {
      const double start = 6.0 * iteration;
      CHECK(interval(trial.graph, result, "A", 0, iteration).end == Approx(start + 1));
      CHECK(interval(trial.graph, result, "sum", 0, iteration).end == Approx(start + 3));
      CHECK(interval(trial.graph, result, "B", 0, iteration).end == Approx(start + 6));
    }
    CHECK(result.iteration == Approx(6));
  }
  for (const ExecutionResult& result : trial.run({})) CHECK(result.iteration == Approx(5));
}

TEST_CASE("what begins under way and outlives one of two messages is slow until the last has ended") {
  // Two measured all-reduces of 2 s one after the other, 1..5: B of 4 s has done 2 s by then and ends at 7.
  Trial trial;
  const TaskId again = trial.graph.collective(
      trial.graph.task(trial.sum).queue,
      {.group = trial.graph.task(trial.sum).ranks, .bytes = Bytes(1), .measured = Seconds(2)}, {"again", ""});
  trial.graph.after(trial.sum, again);
  for (const ExecutionResult& result : trial.run({.costs = {.interference = 0.5}})) {
    CHECK(interval(trial.graph, result, "again").end == Approx(5));
    CHECK(interval(trial.graph, result, "B").end == Approx(7));
  }
}

TEST_CASE("an all-reduce starts after its overhead, unless its time is measured") {
  // 1 GB over a ring of 2 at 1 GB/s: 1 s. A 0..1, 0.5 s of overhead, all-reduce 1.5..2.5.
  const Trial simulated(std::nullopt), measured;
  for (const ExecutionResult& result : simulated.run({.costs = {.overhead = 0.5}})) {
    CHECK(interval(simulated.graph, result, "sum").start == Approx(1));
    CHECK(interval(simulated.graph, result, "sum").end == Approx(2.5));
    CHECK(interval(simulated.graph, result, "B").end == Approx(5));
  }
  for (const ExecutionResult& result : measured.run({.costs = {.overhead = 0.5}}))
    CHECK(interval(measured.graph, result, "sum").end == Approx(3));
}

TEST_CASE("computation loses nothing while an all-reduce waits, and its share from its copies on") {
  // A 0..1, 0.5 s of overhead, copies 1.5..2, messages 2..3: B has done 0.5 s by 1.5, 0.75 s more by 3, and ends
  // at 5.75.
  const Trial trial(std::nullopt);
  for (const ExecutionResult& result :
       trial.run({.costs = {.overhead = 0.5, .copy_time = 0.5e-9, .interference = 0.5}})) {
    CHECK(interval(trial.graph, result, "sum").end == Approx(3));
    CHECK(interval(trial.graph, result, "B").end == Approx(5.75));
    CHECK(result.iteration == Approx(5.75));
  }
}

TEST_CASE("a bound that counts overheads is kept") {
  // Without B the cycle is A and the all-reduce: 1 + 4 s of overhead + 1
  const Trial trial(std::nullopt);
  for (const ExecutionResult& result : trial.run({.costs = {.overhead = 4}})) {
    CHECK(result.iteration == Approx(6));
    REQUIRE(result.bound);
    CHECK(result.bound->seconds == Approx(6));
  }
}

TEST_CASE("bytes take the processor while they move, the more the faster they do") {
  // A ring of 2 moves 1 GB in 1 s, 1 GB out and 1 GB in: at 0.25 s a GB computation loses half. A 0..1,
  // all-reduce 1..2, B has done half a second then, and ends at 5.5.
  const Trial trial(std::nullopt);
  for (const ExecutionResult& result : trial.run({.costs = {.processor_time = 0.25e-9}})) {
    CHECK(interval(trial.graph, result, "sum").end == Approx(2));
    CHECK(interval(trial.graph, result, "B").end == Approx(5.5));
  }
}

TEST_CASE("bytes move no faster than processors move them") {
  // 2 GB at 0.95 s a GB are 1.9 s of a processor, of which 95 % go into it at most: 2 s, where the link needs 1. A
  // 0..1, all-reduce 1..3 takes 95 % of B: a tenth of a second is done then, and B ends at 3 + 3.9.
  const Trial trial(std::nullopt);
  for (const ExecutionResult& result : trial.run({.costs = {.processor_time = 0.95e-9}})) {
    CHECK(interval(trial.graph, result, "sum").end == Approx(3));
    CHECK(interval(trial.graph, result, "B").end == Approx(6.9));
  }
}

TEST_CASE("the bound counts what processors need to move bytes") {
  // 2 GB at 4.75 s a GB are 9.5 s of a processor, 10 s at 95 %: 1 s of A and as much are longer than A and B, 5 s.
  const Trial trial(std::nullopt);
  for (const ExecutionResult& result : trial.run({.costs = {.processor_time = 4.75e-9}})) {
    REQUIRE(result.bound);
    CHECK(result.bound->seconds == Approx(11));
  }
}

TEST_CASE("a message takes as much of a processor however long it waits for links, and two at once both do") {
  // At 0.25 s a GB and 1 GB/s. A 0..1, then messages of 1 GB, of which each takes 0.25 s from B of 4 s: one that shares
  // its receiver's link with another and takes 2 s, or two in opposite directions, 1 s.
  for (const bool opposite : {false, true}) {
    CyclicTaskGraph graph;
    const GroupId own = graph.add_group("own", {0}), other = graph.add_group("other", {1});
    const GroupId last = graph.add_group("last", {2});
    const QueueId compute = graph.add_queue("compute", own, QueueRole::compute, Discipline::program_order);
    const TaskId a = graph.compute(compute, Seconds(1), {"A", ""});
    graph.compute(compute, Seconds(4), {"B", ""});
    const GroupId to = opposite ? other : last;
    const TaskId out = graph.transfer(own, QueueId::none, {own, to, Bytes(1e9)}, {"out", ""});
    const TaskId beside =
        graph.transfer(other, QueueId::none, {other, opposite ? own : last, Bytes(1e9)}, {"beside", ""});
    for (const TaskId message : {out, beside}) graph.after(a, message);
    const testing::Star star(3, 1e9, 0);
    const ExecutionResult result = testing::simulate(
        star.cluster(), graph, {.exact = true, .costs = {.processor_time = 0.25e-9}, .record_timeline = true});
    CHECK(interval(graph, result, "out").end == Approx(opposite ? 2 : 3));
    CHECK(interval(graph, result, "B").end == Approx(opposite ? 5.5 : 5.25));
  }
}

TEST_CASE("a message of a collective waits for its receiver's notice") {
  // A ring of 2 sums 1 GB in two messages of half a second, one after the other, each a latency of 0.1 s after both
  // ranks are ready, and a second one with a handshake: 1.2 and 1.4 s after A.
  const Trial trial(std::nullopt);
  const testing::Star star(2, 1e9, 0.1);
  for (const double handshake : {0.0, 1.0})
    for (const CollectiveLevel level :
         {CollectiveLevel::message, CollectiveLevel::flow, CollectiveLevel::closed_form}) {
      CyclicTaskGraph graph = trial.graph;
      graph.tune_collectives([&](Collective& work, const Group&) { work.level = level; });
      const ExecutionResult result = testing::simulate(
          star.cluster(), graph, {.exact = true, .costs = {.handshake = handshake}, .record_timeline = true});
      CHECK(interval(graph, result, "sum").end == Approx(2.2 + 0.2 * handshake));
    }
}

TEST_CASE("a message longer than the window goes in parts, each with its notice") {
  // As above, each message of half a second in two parts (0.5 GB in windows of 0.25 GB), then in three: the latency and
  // the notice of each part take 0.2 s.
  const Trial trial(std::nullopt);
  const testing::Star star(2, 1e9, 0.1);
  for (const auto& [window, parts] : {std::pair(1e9, 1), {0.25e9, 2}, {0.2e9, 3}})
    for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::automatic})
      for (const CollectiveLevel level :
           {CollectiveLevel::message, CollectiveLevel::flow, CollectiveLevel::closed_form}) {
        CyclicTaskGraph graph = trial.graph;
        graph.tune_collectives([&](Collective& work, const Group&) {
          work.level = level;
          work.algorithm = algorithm;
        });
        const ExecutionResult result =
            testing::simulate(star.cluster(), graph,
                              {.exact = true, .costs = {.handshake = 1, .window = window}, .record_timeline = true});
        CAPTURE(window, level);
        if (algorithm == CollectiveAlgorithm::ring)
          CHECK(interval(graph, result, "sum").end == Approx(2 + 2 * parts * 0.2));
        else  // two halves, or all at once: of two ranks the same bytes in each direction
          CHECK(interval(graph, result, "sum").end <= 2 + 2 * parts * 0.2 + 1e-9);
      }
}

TEST_CASE("messages between devices that compute take kernels, those to a node's processors or a lone server do not") {
  // A 0..1, a message of 2 s after it, B 1..6 at half speed while the message is under way; 1..5 if copy engines move
  // it.
  for (const auto& [processors, computes] : {std::pair{false, true}, {true, true}, {false, false}}) {
    CyclicTaskGraph graph;
    const GroupId worker = graph.add_group("worker", {0}), server = graph.add_group("server", {1});
    if (computes)
      graph.compute(graph.add_queue("other", server, QueueRole::compute, Discipline::program_order), Seconds(5),
                    {"C", ""});
    const QueueId compute = graph.add_queue("compute", worker, QueueRole::compute, Discipline::program_order);
    const TaskId a = graph.compute(compute, Seconds(1), {"A", ""});
    const TaskId b = graph.compute(compute, Seconds(4), {"B", ""});
    const TaskId push = graph.transfer(worker, QueueId::none, {worker, server, Bytes(2e9)}, {"push", ""});
    graph.after(a, push);
    graph.after(push, a, 1);
    graph.after(b, a, 1);
    const testing::Star star(2, 1e9, 0);
    Cluster cluster = star.cluster();
    cluster.devices[1].trains = !processors;
    const ExecutionResult result = testing::simulate(
        cluster, graph, {.iterations = 3, .exact = true, .costs = {.interference = 0.5}, .record_timeline = true});
    CHECK(interval(graph, result, "push").end == Approx(3));
    CHECK(interval(graph, result, "B").end == Approx(processors || !computes ? 5 : 6));
  }
}

TEST_CASE("copies come before the messages, in proportion to bytes") {
  const Trial trial(std::nullopt);
  for (const ExecutionResult& result : trial.run({.costs = {.copy_time = 0.5e-9}}))
    CHECK(interval(trial.graph, result, "sum").end == Approx(2.5));
}

TEST_CASE("a device that stands still loses no more to communication than the time it stands still") {
  // Worker 0 stands still from 2 to 3, while it communicates: B, begun at 1, has 0.5 s done at 2, and the rest from 3
  // on.
  const Trial trial;
  SlowWindow stop{.from = 2, .until = 3, .factor = std::numeric_limits<double>::infinity()};
  const ExecutionOptions options{.slow_devices = {{0, stop}}, .costs = {.interference = 0.5}};
  const ExecutionResult result = trial.run(options).back();
  CHECK(testing::interval(trial.graph, result, "B").end == Approx(6.5));
}

TEST_CASE("an execution ends with its last task, not when that would have ended otherwise") {
  const Trial trial;  // B, begun at 1 at half speed, would end at 9
  for (const ExecutionResult& result : trial.run({.costs = {.interference = 0.5}})) {
    CHECK(result.total == Approx(6 * 6));
    for (const ActivityTimes& times : result.totals.activity) {
      if (times.total() > 0) CHECK(times.total() == Approx(6 * 6));
    }
  }
}

TEST_CASE("a computation ends at the earliest date at which the engine may call it") {
  CyclicTaskGraph graph;
  const GroupId group = graph.add_group("worker", {0});
  graph.compute(graph.add_queue("compute", group, QueueRole::compute, Discipline::program_order), Seconds(1),
                {"A", ""});
  const CompiledGraph compiled = compile(graph, false);
  const ExecutionOptions options;
  const Durations durations(compiled, options, 1, 0);
  Interference interference(compiled, durations, true, 1);
  const Instance a{0, 0};
  REQUIRE(interference.slows(a));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> logarithm(-6, 4);
  for (int trial = 0; trial < 100'000; ++trial) {
    const double begin = std::pow(10, logarithm(random)), due = interference.begins(a, 1e-9, begin);
    // Events up to a tolerance later happen with the first, at its date.
    double earliest = due - SimEngine::tolerance(due);
    while (due <= earliest + SimEngine::tolerance(earliest)) earliest = std::nextafter(earliest, 0);
    CHECK_FALSE(interference.ends(a, earliest));
    REQUIRE(interference.ends(a, std::nextafter(earliest, due)));
  }
}

}  // namespace epocast::interference_test
