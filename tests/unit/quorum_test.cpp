// Synchronous training with backup workers (Chen et al. 2016): a join goes on with the first k of P ranks, the others'
// contributions are dropped, and iterations that became obsolete before a rank began them are skipped.
#include <catch2/catch.hpp>

#include "tests/support/simulate.hpp"

namespace epocast::quorum_test {

using testing::interval;
using testing::simulate;
using testing::Star;

namespace {

constexpr double kMs = 1e-3;

/// Three workers compute for 4 ms, then (if it takes time) a server receives from each in turn, and updates for 1 ms
/// once two of them are there.
struct Backup {
  CyclicTaskGraph graph;
  TaskId begin, work, received, update;

  explicit Backup(double receiving, int quorum = 2) {
    const GroupId workers = graph.add_group("workers", {0, 1, 2}), server = graph.add_group("server", {3});
    const QueueId own = graph.add_queue("own", workers, QueueRole::compute, Discipline::program_order);
    const QueueId shared = graph.add_queue("shared", server, QueueRole::server, Discipline::fifo);
    begin = graph.compute_for(workers, QueueId::none, Seconds(0), {"begin", ""});
    work = graph.compute(own, Seconds(4 * kMs), {"work", ""});
    received = graph.compute_for(workers, shared, Seconds(receiving), {"receive", ""});
    update = graph.compute(shared, Seconds(1 * kMs), {"update", ""});
    graph.after(begin, work);
    graph.after(work, received);
    graph.after(received, update);
    graph.after(update, begin, 1);
    graph.after(work, begin, 1);  // a worker begins a step when it has ended the one before
    graph.set_quorum(update, quorum);
    graph.obsolete_after(begin, update);
    graph.obsolete_after(received, update);
  }

  ExecutionResult run(double slowdown, std::int64_t iterations, bool exact = true) const {
    const Star star(4, 1e9, 0);
    return simulate(
        star.cluster(), graph,
        {.iterations = iterations, .exact = exact, .slowdown = {1, 1, slowdown, 1}, .record_timeline = exact});
  }
};

}  // namespace

TEST_CASE("who is late is dropped and goes on with the iteration that the others are in", "[quorum]") {
  // Workers 0 and 1 work in [5 n, 5 n + 4] ms, updates are in [5 n + 4, 5 n + 5]. Worker 2 needs 10.4 ms a step. It
  // ends step 0 at 10.4, when update 1 has started (9) but not update 2 (14): it skips step 1 and does step 2
  // until 20.8; update 3 has started by then (19), update 4 has not (24); and so on: it does the even steps, and all
  // are dropped.
  const Backup backup(0);
  const ExecutionResult result = backup.run(2.6, 10);
  for (const std::int64_t n : {0, 1, 2, 7}) {
    const double start = 5 * static_cast<double>(n) * kMs;
    CHECK(interval(backup.graph, result, "work", 1, n).start == Approx(start).margin(1e-9));
    CHECK(interval(backup.graph, result, "update", 0, n).end == Approx(start + 5 * kMs).margin(1e-9));
  }
  CHECK(interval(backup.graph, result, "work", 2, 2).start == Approx(10.4 * kMs).margin(1e-9));
  CHECK(interval(backup.graph, result, "work", 2, 4).start == Approx(20.8 * kMs).margin(1e-9));
  CHECK_THROWS(interval(backup.graph, result, "work", 2, 1));  // never happened
  REQUIRE(result.workers.size() == 3);
  CHECK(result.workers[0].steps == 10);
  CHECK(result.workers[2].steps == 5);
  CHECK(result.workers[2].skipped == 5);
  CHECK(result.workers[2].dropped == 5);
  CHECK(result.workers[0].dropped + result.workers[1].dropped == 0);
  CHECK(result.total == Approx(52 * kMs).margin(1e-9));  // worker 2 ends its step 8, begun at 41.6
}

TEST_CASE("dropping and skipping becomes periodic", "[quorum]") {
  // 10.45 ms a step, in a rhythm of 5 ms: worker 2 ends its n-th step 0.45 n ms after a multiple of 5 ms, until its 9th
  // ends at 94.05 ms, during update 18. It then waits for that to end at 95 ms, and all begins anew: 19 iterations.
  const Backup backup(0);
  const ExecutionResult exact = backup.run(2.6125, 1000), extrapolated = backup.run(2.6125, 1000, false);
  REQUIRE(extrapolated.period);
  CHECK(extrapolated.period->length == 19);
  CHECK(extrapolated.iterations_simulated < 200);
  CHECK(extrapolated.total == Approx(exact.total).epsilon(1e-9));
}

TEST_CASE("the server does nothing for a contribution that is too late", "[quorum]") {
  // Receiving takes 0.5 ms from each in turn: 4 .. 4.5 .. 5. Worker 2, 1.1 times slower, ends at 4.4 and stands in line
  // until 5. By then two are there, so what it brings is dropped in no time and the update follows at once: 5 .. 6.
  const Backup backup(0.5 * kMs);
  const ExecutionResult result = backup.run(1.1, 3);
  CHECK(interval(backup.graph, result, "update", 0, 0).start == Approx(5 * kMs).margin(1e-9));
  CHECK(interval(backup.graph, result, "update", 0, 2).end == Approx(18 * kMs).margin(1e-9));
  CHECK(result.workers[2].dropped == 3);
  CHECK(result.workers[2].steps == 3);
}

TEST_CASE("a quorum of all is an ordinary join", "[quorum]") {
  // Everybody waits for worker 2: 10.4 ms + 1 ms.
  const ExecutionResult result = Backup(0, 3).run(2.6, 10);
  CHECK(result.total == Approx(114 * kMs).margin(1e-9));
  for (const WorkerReport& worker : result.workers) CHECK((worker.steps == 10 && worker.dropped == 0));
}

TEST_CASE("a quorum of one follows the fastest", "[quorum]") {
  // Workers 0 and 1 tie at 4 ms; the update waits for one of them, the other is late by no time at all.
  const ExecutionResult result = Backup(0, 1).run(2.6, 10);
  CHECK(interval(Backup(0, 1).graph, result, "update", 0, 9).end == Approx(50 * kMs).margin(1e-9));
  CHECK(result.workers[0].dropped + result.workers[1].dropped == 10);
}

TEST_CASE("quorums that cannot be are refused", "[quorum]") {
  const Star star(4, 1e9, 0);
  for (const int quorum : {-1, 4}) CHECK_THROWS_AS(Backup(0, quorum).graph.validate(star.cluster()), GraphError);
  Backup on_ranks(0);
  on_ranks.graph.set_quorum(on_ranks.work, 2);
  CHECK_THROWS_AS(on_ranks.graph.validate(star.cluster()), GraphError);
  Backup backwards(0);
  backwards.graph.obsolete_after(backwards.begin, backwards.work);
  CHECK_THROWS_AS(backwards.graph.validate(star.cluster()), GraphError);
}

}  // namespace epocast::quorum_test
