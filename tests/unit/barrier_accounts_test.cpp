// Time lost at joins: while a rank has nothing under way and has arrived where others have not. Whoever comes last has
// cost the others what they lost.
#include <catch2/catch.hpp>

#include "tests/support/simulate.hpp"

namespace epocast::barrier_accounts_test {

using testing::simulate;
using testing::Star;

TEST_CASE("at a barrier each waits for the last", "[barrier]") {
  // Steps of 4, 6 and 10 ms, 5 times: rank 0 loses 6 ms a step and rank 1 loses 4; both because of rank 2.
  const Star star(4, 1e9, 0);
  CyclicTaskGraph graph;
  const GroupId all = graph.add_group("all", {0, 1, 2}), one = graph.add_group("one", {3});
  const QueueId own = graph.add_queue("own", all, QueueRole::compute, Discipline::program_order);
  const QueueId server = graph.add_queue("server", one, QueueRole::server, Discipline::fifo);
  const TaskId work = graph.compute(own, Seconds(2e-3), {"work", ""});
  const TaskId update = graph.compute(server, Seconds(5e-3), {"update", ""});
  graph.after(work, update);
  graph.after(update, work, 1);
  const auto run = [&](bool record) {
    return simulate(star.cluster(), graph,
                    {.iterations = 5, .exact = true, .slowdown = {2, 3, 5, 1}, .record_waiting = record});
  };
  const ExecutionResult result = run(true);
  REQUIRE(result.workers.size() == 3);
  CHECK(result.workers[0].lost == Approx(30e-3));
  CHECK(result.workers[1].lost == Approx(20e-3));
  CHECK(result.workers[2].lost == Approx(0).margin(1e-12));  // waiting for the server is nobody's delay
  CHECK(result.workers[2].cost_to_others == Approx(50e-3));
  CHECK(result.workers[2].came_last == 5);
  CHECK(result.workers[0].came_last + result.workers[1].came_last == 0);
  REQUIRE(result.servers.size() == 1);
  CHECK(result.servers.front().served == 5);
  CHECK(result.servers.front().utilization == Approx(5.0 / 15));  // 10 ms of work, 5 ms of update
  CHECK(run(false).total == result.total);
  CHECK(run(false).workers[0].lost == 0);
}

}  // namespace epocast::barrier_accounts_test
