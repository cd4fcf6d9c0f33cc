// The executor has no freedom: when a task starts follows from tokens, queues and the network. Small graphs have
// timelines that can be derived on paper. Network: a star of 1 GB/s links, so a message of n MB alone takes n ms after
// its latency.
//
// Dates are sums of a few doubles, and SimGrid lets a flow end 1e-12 s early: 1e-9 s is ample.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "sim/timed_instances.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::executor_test {

using testing::interval;
using testing::Run;
using testing::simulate;
using testing::Star;

namespace {

constexpr double kMs = 1e-3, kMB = 1e6;

void check_interval(const Interval& i, double start, double end) {
  CHECK(i.start == Approx(start).margin(1e-9));
  CHECK(i.end == Approx(end).margin(1e-9));
}

ExecutionOptions recorded(std::int64_t iterations) {
  return {.iterations = iterations, .exact = true, .record_timeline = true};
}

}  // namespace

TEST_CASE("computations of one queue follow each other, iteration after iteration", "[executor]") {
  // 1 ms, nothing, 2 ms: iteration k starts at 3 k ms. The task of no duration starts and ends between the others.
  const Star star(2, 1e9, 1 * kMs);
  CyclicTaskGraph graph;
  const GroupId device = graph.add_group("device", {0});
  const QueueId queue = graph.add_queue("queue", device, QueueRole::compute, Discipline::program_order);
  graph.compute(queue, Seconds(1 * kMs), {"a", ""});
  graph.compute(queue, Seconds(0), {"nothing", ""});
  graph.compute(queue, Seconds(2 * kMs), {"b", ""});
  const ExecutionResult result = simulate(star.cluster(), graph, recorded(5));
  for (const int k : {0, 1, 4}) {
    check_interval(interval(graph, result, "a", 0, k), 3 * k * kMs, (3 * k + 1) * kMs);
    check_interval(interval(graph, result, "nothing", 0, k), (3 * k + 1) * kMs, (3 * k + 1) * kMs);
    check_interval(interval(graph, result, "b", 0, k), (3 * k + 1) * kMs, (3 * k + 3) * kMs);
  }
  CHECK(result.timeline.intervals.size() == 15);
  CHECK(result.total == Approx(15 * kMs).margin(1e-9));
  CHECK(result.iteration == Approx(3 * kMs).margin(1e-9));
  CHECK(result.metrics.compute == Approx(3 * kMs).margin(1e-9));
  CHECK(result.bound->seconds == Approx(3 * kMs).margin(1e-9));
}

TEST_CASE("a loop of tasks that take no time ends at once", "[executor]") {
  const Star star(2, 1e9, 0);
  CyclicTaskGraph graph;
  const QueueId queue =
      graph.add_queue("queue", graph.add_group("device", {0}), QueueRole::compute, Discipline::program_order);
  graph.compute(queue, Seconds(0), {"a", ""});
  graph.compute(queue, Seconds(0), {"b", ""});
  const ExecutionResult result = simulate(star.cluster(), graph, recorded(100));
  CHECK(result.total == 0);
  CHECK(result.timeline.intervals.size() == 200);
}

TEST_CASE("messages pay their latency, then share links fairly", "[executor]") {
  // 2 ms of latency. Workers 1 and 2 send 10 MB to device 0, whose downlink they share: worker 1 starts its flow at 2
  // ms; worker 2 first computes for 4 ms and starts its at 6 ms. By then 4 MB of worker 1's have arrived; the other 6
  // MB go at half rate until 6 + 12 = 18 ms. Worker 2 then has 4 MB left and the link to itself: 22 ms.
  const Star star(3, 1e9, 2 * kMs);
  CyclicTaskGraph graph;
  const GroupId hub = graph.add_group("hub", {0}), first = graph.add_group("first", {1}),
                second = graph.add_group("second", {2});
  const QueueId queue = graph.add_queue("queue", second, QueueRole::compute, Discipline::program_order);
  const TaskId work = graph.compute(queue, Seconds(4 * kMs), {"work", ""});
  graph.transfer(first, QueueId::none, {first, hub, Bytes(10 * kMB)}, {"one", ""});
  graph.after(work, graph.transfer(second, QueueId::none, {second, hub, Bytes(10 * kMB)}, {"two", ""}));
  const ExecutionResult result = simulate(star.cluster(), graph, recorded(1));
  check_interval(interval(graph, result, "one"), 0, 18 * kMs);
  check_interval(interval(graph, result, "two"), 4 * kMs, 22 * kMs);
  CHECK(result.totals.sent == std::vector<double>{0, 10 * kMB, 10 * kMB});
  CHECK(result.totals.received == std::vector<double>{20 * kMB, 0, 0});
}

TEST_CASE("up- and downlinks are independent, and a message to oneself is free", "[executor]") {
  // Rank 0 sends to device 0, itself: at once. Rank 1 sends 5 MB to device 0 and receives 5 MB from it at the same
  // time.
  const Star star(2, 1e9, 1 * kMs);
  CyclicTaskGraph graph;
  const GroupId both = graph.add_group("both", {0, 1}), hub = graph.add_group("hub", {0});
  graph.transfer(both, QueueId::none, {both, hub, Bytes(5 * kMB)}, {"push", ""});
  graph.transfer(both, QueueId::none, {hub, both, Bytes(5 * kMB)}, {"pull", ""});
  const ExecutionResult result = simulate(star.cluster(), graph, recorded(1));
  for (const char* name : {"push", "pull"}) {
    check_interval(interval(graph, result, name, 0), 0, 0);
    check_interval(interval(graph, result, name, 1), 0, 6 * kMs);
  }
  CHECK(result.totals.sent == std::vector<double>{5 * kMB, 5 * kMB});
}

TEST_CASE("a message of no bytes still pays its latency", "[executor]") {
  const Star star(2, 1e9, 3 * kMs);
  CyclicTaskGraph graph;
  const GroupId a = graph.add_group("a", {0}), b = graph.add_group("b", {1});
  graph.transfer(a, QueueId::none, {a, b, Bytes(0)}, {"signal", ""});
  const ExecutionResult result = simulate(star.cluster(), graph, recorded(1));
  check_interval(interval(graph, result, "signal"), 0, 3 * kMs);
}

TEST_CASE("a priority queue serves the smallest number that is ready", "[executor]") {
  // A source takes 1 ms, then three tasks become ready in program order: low (9), mid (5), high (1), each 2 ms. The
  // first one finds the queue free and starts at 1 ms, whatever its priority; then high at 3 ms, mid at 5 ms.
  const Star star(1, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId device = graph.add_group("device", {0});
  const QueueId source = graph.add_queue("source", device, QueueRole::compute, Discipline::program_order);
  const QueueId queue = graph.add_queue("queue", device, QueueRole::compute, Discipline::priority);
  const TaskId begin = graph.compute(source, Seconds(1 * kMs), {"begin", ""});
  for (const auto& [name, priority] : {std::pair{"low", 9}, {"mid", 5}, {"high", 1}}) {
    const TaskId task = graph.compute(queue, Seconds(2 * kMs), {name, ""});
    graph.set_priority(task, priority);
    graph.after(begin, task);
  }
  const ExecutionResult result = simulate(star.cluster(), graph, recorded(1));
  check_interval(interval(graph, result, "low"), 1 * kMs, 3 * kMs);
  check_interval(interval(graph, result, "high"), 3 * kMs, 5 * kMs);
  check_interval(interval(graph, result, "mid"), 5 * kMs, 7 * kMs);
}

TEST_CASE("staleness counts the versions written between a read and a write of the same rank", "[executor]") {
  // Three workers read at the start of `work` and write at the end of `serve` (1 ms each, one after the other). Work
  // takes 1 ms, so the server is never idle and every worker waits for the two others: it reads right after its own
  // write, and two writes come before its next one. Staleness 2 in every iteration after the first.
  const Star star(4, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId workers = graph.add_group("workers", {0, 1, 2}), server = graph.add_group("server", {3});
  const QueueId own = graph.add_queue("own", workers, QueueRole::compute, Discipline::program_order);
  const QueueId shared = graph.add_queue("shared", server, QueueRole::server, Discipline::fifo);
  const StoreId store = graph.add_store("parameters");
  const TaskId work = graph.compute(own, Seconds(1 * kMs), {"work", ""});
  const TaskId serve = graph.compute_for(workers, shared, Seconds(1 * kMs), {"serve", ""});
  graph.after(work, serve);
  graph.after(serve, work, 1);
  graph.set_version_effect(work, {store, VersionEffect::read_at_start});
  graph.set_version_effect(serve, {store, VersionEffect::write_at_end});
  const ExecutionResult result = simulate(star.cluster(), graph, recorded(50));
  CHECK(result.metrics.mean_staleness == 2.0);
  CHECK(result.metrics.max_staleness == 2);
  // Served in the order of arrival: rank r of iteration k from 1 + r + 3 k ms on.
  for (const std::uint32_t rank : {0U, 1U, 2U})
    check_interval(interval(graph, result, "serve", rank, 7), (1 + rank + 21) * kMs, (2 + rank + 21) * kMs);
  CHECK(result.iteration == Approx(3 * kMs).margin(1e-9));
  CHECK(result.bound->seconds == Approx(3 * kMs).margin(1e-9));  // the server's order of service is the cycle
}

TEST_CASE("a slow device is slow in its computations only", "[executor]") {
  const Star star(2, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId both = graph.add_group("both", {0, 1});
  const QueueId queue = graph.add_queue("queue", both, QueueRole::compute, Discipline::program_order);
  const TaskId work = graph.compute(queue, Seconds(2 * kMs), {"work", ""});
  const GroupId other = graph.add_group("other", {1, 0});
  graph.after(work, graph.transfer(both, QueueId::none, {both, other, Bytes(4 * kMB)}, {"send", ""}));
  ExecutionOptions options = recorded(1);
  options.slowdown = {1, 1.5};
  const ExecutionResult result = simulate(star.cluster(), graph, options);
  check_interval(interval(graph, result, "work", 0), 0, 2 * kMs);
  check_interval(interval(graph, result, "work", 1), 0, 3 * kMs);
  check_interval(interval(graph, result, "send", 1), 3 * kMs, 7 * kMs);
}

TEST_CASE("graphs run one after the other on one engine with the same result", "[executor]") {
  const Star star(2, 1e9, 1 * kMs);
  CyclicTaskGraph graph;
  const GroupId both = graph.add_group("both", {0, 1});
  const QueueId queue = graph.add_queue("queue", both, QueueRole::compute, Discipline::program_order);
  const TaskId work = graph.compute(queue, Seconds(2 * kMs), {"work", ""});
  const QueueId wire = graph.add_queue("wire", both, QueueRole::communication, Discipline::fifo);
  const TaskId reduce = graph.collective(wire, {.group = both, .bytes = Bytes(1 * kMB)}, {"all-reduce", ""});
  graph.after(work, reduce);
  graph.after(reduce, work, 1);
  const auto results =
      simulate(star.cluster(), {Run{graph, recorded(3)}, Run{graph, recorded(3)}, Run{graph, {.iterations = 7}}});
  // 2 ms, then two rounds of 1 ms + 0.5 MB: 5 ms per iteration. Times count from each run's own start.
  CHECK(results[0].total == Approx(15 * kMs).margin(1e-9));
  CHECK(results[1].total == Approx(15 * kMs).margin(1e-9));
  CHECK(results[2].total == Approx(35 * kMs).margin(1e-9));
  check_interval(interval(graph, results[1], "work", 0, 0), 0, 2 * kMs);
}

TEST_CASE("what an engine knows of its teams from other runs changes no digit", "[executor]") {
  // Unequal links, so that the choice of an algorithm asks for routes, and runs trees to predict them.
  const Cluster cluster = testing::platform("dgx1_v100");
  CyclicTaskGraph graph;
  const GroupId all = graph.add_group("all", {0, 1, 2, 3, 4, 5, 6, 7});
  const QueueId queue = graph.add_queue("queue", all, QueueRole::compute, Discipline::program_order);
  const QueueId wire = graph.add_queue("wire", all, QueueRole::communication, Discipline::fifo);
  TaskId last = graph.compute(queue, Seconds(2 * kMs), {"work", ""});
  const TaskId first = last;
  for (const double bytes : {1e3, 1e5, 1e7}) {
    const TaskId reduce = graph.collective(
        wire, {.algorithm = CollectiveAlgorithm::automatic, .group = all, .bytes = Bytes(bytes)}, {"all-reduce", ""});
    graph.after(last, reduce);
    last = reduce;
  }
  graph.after(last, first, 1);
  const ExecutionOptions usual{.iterations = 20};
  ExecutionOptions slow = usual;
  slow.costs.handshake = 1;
  const double alone = simulate(cluster, graph, usual).total, alone_slow = simulate(cluster, graph, slow).total;
  CHECK(alone_slow > alone);
  const auto results = simulate(cluster, {Run{graph, slow}, Run{graph, usual}, Run{graph, usual}, Run{graph, slow}});
  CHECK(results[0].total == alone_slow);
  CHECK(results[1].total == alone);
  CHECK(results[2].total == alone);
  CHECK(results[3].total == alone_slow);
}

TEST_CASE("only the pace: a run ends when its period is known, and the next one begins afresh", "[executor]") {
  // A producer of 1 ms, 1 MB, a consumer of 2 ms: from the second iteration on 2 ms each, with the producer far ahead.
  const Star star(2, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId a = graph.add_group("a", {0}), b = graph.add_group("b", {1});
  const TaskId made = graph.compute(graph.add_queue("a", a, QueueRole::compute, Discipline::program_order),
                                    Seconds(1 * kMs), {"make", ""});
  const TaskId sent = graph.transfer(a, graph.add_queue("a sends", a, QueueRole::communication, Discipline::fifo),
                                     {a, b, Bytes(kMB)}, {"send", ""});
  const TaskId used = graph.compute(graph.add_queue("b", b, QueueRole::compute, Discipline::program_order),
                                    Seconds(2 * kMs), {"use", ""});
  graph.after(made, sent);
  graph.after(sent, used);
  graph.after(used, made, 8);
  const std::int64_t iterations = 1000;
  const auto results = simulate(star.cluster(), {Run{graph, {.iterations = iterations}},
                                                 Run{graph, {.iterations = iterations, .only_pace = true}},
                                                 Run{graph, {.iterations = iterations, .find_bound = false}}});
  CHECK(results[1].iteration == Approx(2 * kMs).epsilon(1e-9));
  CHECK(results[1].iterations_simulated < results[0].iterations_simulated);
  CHECK(results[0].bound->seconds == Approx(2 * kMs).epsilon(1e-9));
  CHECK(!results[2].bound);
  for (const std::size_t i : {0, 2}) CHECK(results[i].total == Approx((2 + 2 * iterations) * kMs).epsilon(1e-9));
}

TEST_CASE("a join that takes no time and runs ahead does not hide that all else repeats", "[executor]") {
  // 1, 2 and 3 ms on two devices in turn: an iteration takes 6 ms. What the second task waits for, itself of the
  // iteration before, is there at 0 ms and then at 3, 9, 15 ms: 3 ms after the first time and 6 ms from then on.
  const Star star(2, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId a = graph.add_group("a", {0}), b = graph.add_group("b", {1});
  const QueueId on_a = graph.add_queue("a", a, QueueRole::compute, Discipline::program_order);
  const TaskId first = graph.compute(on_a, Seconds(1 * kMs), {"first", ""});
  const TaskId second = graph.compute(graph.add_queue("b", b, QueueRole::compute, Discipline::program_order),
                                      Seconds(2 * kMs), {"second", ""});
  const TaskId third = graph.compute(on_a, Seconds(3 * kMs), {"third", ""});
  const TaskId wait = graph.compute_for(b, QueueId::none, Seconds(0), {"wait", ""});
  graph.after(first, second);
  graph.after(second, third);
  graph.after(second, wait, 1);
  graph.after(wait, second);
  const CompiledGraph compiled = compile(graph, false);
  CHECK(TimedInstances(compiled, {}).count() == 3);
  for (const bool watched : {false, true}) {
    INFO((watched ? "an iteration more shows what is between two" : "the second begins as the first did"));
    const ExecutionResult result = simulate(star.cluster(), graph, {.iterations = 1000, .record_timeline = watched});
    CHECK(result.iterations_simulated == (watched ? 2 : 1));
    CHECK(result.exact);
    CHECK(result.total == Approx(6000 * kMs).epsilon(1e-12));
  }
  const ExecutionResult result = simulate(star.cluster(), graph, {.iterations = 1000});
  const ExecutionResult all = simulate(star.cluster(), graph, {.iterations = 1000, .exact = true});
  CHECK(all.total == Approx(6000 * kMs).epsilon(1e-9));
  CHECK(result.metrics.compute == Approx(all.metrics.compute).epsilon(1e-9));
}

TEST_CASE("what begins before the first iteration has ended is not taken for a start over", "[executor]") {
  // 4 ms on a, then 1 ms on b, 5 ms after which a's iteration after next may begin: a alone decides, 4 ms. The first
  // iteration ends after 5 ms, the others every 4 ms.
  const Star star(2, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId a = graph.add_group("a", {0}), b = graph.add_group("b", {1});
  const TaskId made = graph.compute(graph.add_queue("a", a, QueueRole::compute, Discipline::program_order),
                                    Seconds(4 * kMs), {"make", ""});
  const TaskId used = graph.compute(graph.add_queue("b", b, QueueRole::compute, Discipline::program_order),
                                    Seconds(1 * kMs), {"use", ""});
  graph.after(made, used);
  graph.after(used, made, 2);
  const ExecutionResult result = simulate(star.cluster(), graph, {.iterations = 1000});
  CHECK(result.iterations_simulated > 1);
  CHECK(result.iteration == Approx(4 * kMs).epsilon(1e-9));
  CHECK(result.total == Approx(4001 * kMs).epsilon(1e-9));
}

TEST_CASE("a join that takes no time adds the lags before and behind it", "[executor]") {
  // The first of six stages of 2 ms may be two iterations ahead of the last, by way of a join: of one there is one lag
  // on either side. Iterations 0 and 1 end at 12 and 14 ms, 2 and 3 at 24 and 26: a shift of 2 ms is not the period.
  const Star star(7, 1e9, 0);
  CyclicTaskGraph graph;
  std::vector<TaskId> stages;
  for (int d = 0; d < 6; ++d) {
    const GroupId device = graph.add_group("device", {DeviceId(d)});
    stages.push_back(graph.compute(graph.add_queue("queue", device, QueueRole::compute, Discipline::program_order),
                                   Seconds(2 * kMs), {"stage", std::to_string(d)}));
    if (d > 0) graph.after(stages[stages.size() - 2], stages.back());
  }
  const TaskId wait = graph.compute_for(graph.add_group("first", {0}), QueueId::none, Seconds(0), {"wait", ""});
  graph.after(stages.back(), wait, 1);
  graph.after(wait, stages.front(), 1);
  const CompiledGraph compiled = compile(graph, false);
  CHECK(TimedInstances(compiled, {}).count() == 7);  // the join is one of them
  const ExecutionResult result = simulate(star.cluster(), graph, {.iterations = 1000});
  CHECK(result.total == Approx(500 * 12 * kMs + 2 * kMs).epsilon(1e-9));
  CHECK(result.iteration == Approx(6 * kMs).epsilon(1e-9));
}

TEST_CASE("a pipeline's first stage is not trusted before the last stage has joined it", "[executor]") {
  // Source -> eight relays -> sink, 10 ms each, nothing pushes back: the source is nine iterations ahead when the sink
  // starts. The sink then sends 8 MB through the uplink that the source's own 8 MB take in each of its 10 ms (2 ms
  // compute and 8 ms alone). From there on they contend and the source takes longer; rows from before must not be
  // extrapolated.
  const Star star(3, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId device = graph.add_group("device", {0}), left = graph.add_group("left", {1}),
                right = graph.add_group("right", {2});
  const auto stage = [&](double ms, const char* name) {
    return graph.compute(graph.add_queue(name, device, QueueRole::compute, Discipline::program_order),
                         Seconds(ms * kMs), {name, ""});
  };
  const TaskId source = stage(2, "source");
  const TaskId sent = graph.transfer(device, QueueId::none, {device, left, Bytes(8 * kMB)}, {"send", "source"});
  graph.after(source, sent);
  graph.after(sent, source, 1);
  TaskId last = sent;
  for (int relay = 0; relay < 8; ++relay) {
    const TaskId next = stage(10, "relay");
    graph.after(last, next);
    last = next;
  }
  graph.after(last, graph.transfer(device, QueueId::none, {device, right, Bytes(8 * kMB)}, {"send", "sink"}));
  const auto results =
      simulate(star.cluster(), {Run{graph, {.iterations = 500}}, Run{graph, {.iterations = 500, .exact = true}}});
  CHECK(results[0].total == Approx(results[1].total).epsilon(1e-9));
  CHECK(results[1].total > 500 * 11 * kMs);
}

}  // namespace epocast::executor_test
