// Steps from a common pool: who has finished one takes the next.
#include <catch2/catch.hpp>

#include "tests/support/simulate.hpp"

namespace epocast::step_pool_test {

using testing::simulate;
using testing::Star;

namespace {

constexpr double kMs = 1e-3;

/// Workers that compute for 3 ms + 1 ms a step and depend on nobody.
CyclicTaskGraph free_workers(int count) {
  CyclicTaskGraph graph;
  std::vector<DeviceId> devices;
  for (int d = 0; d < count; ++d) devices.push_back(d);
  const GroupId workers = graph.add_group("workers", devices);
  const QueueId own = graph.add_queue("own", workers, QueueRole::compute, Discipline::program_order);
  graph.compute(own, Seconds(3 * kMs), {"forward", ""});
  graph.compute(own, Seconds(1 * kMs), {"backward", ""});
  return graph;
}

}  // namespace

TEST_CASE("fast workers take more steps from the pool", "[stealing]") {
  // 4, 4 and 8 ms a step; 3 x 10 steps. In 8 ms the three do 2 + 2 + 1 steps: 30 steps take 6 x 8 ms, with 12, 12
  // and 6.
  const Star star(3, 1e9, 0);
  const ExecutionResult result =
      simulate(star.cluster(), free_workers(3),
               {.iterations = 10, .shards = Shards::stealing, .exact = true, .slowdown = {1, 1, 2}});
  CHECK(result.total == Approx(48 * kMs).margin(1e-9));
  REQUIRE(result.workers.size() == 3);
  CHECK(result.workers[0].steps == 12);
  CHECK(result.workers[1].steps == 12);
  CHECK(result.workers[2].steps == 6);
  CHECK(result.exact);
  // Fixed shards wait for the slow one: 10 x 8 ms.
  const ExecutionResult fixed =
      simulate(star.cluster(), free_workers(3), {.iterations = 10, .exact = true, .slowdown = {1, 1, 2}});
  CHECK(fixed.total == Approx(80 * kMs).margin(1e-9));
}

TEST_CASE("the last step of the pool is one worker's alone", "[stealing]") {
  // Rates 1/4 and 1/12 per ms, 2 x 2 steps. Both take one at 0, worker 0 another at 4 and the last at 8; ends at 12.
  const Star star(2, 1e9, 0);
  const ExecutionResult result =
      simulate(star.cluster(), free_workers(2),
               {.iterations = 2, .shards = Shards::stealing, .exact = true, .slowdown = {1, 3}});
  CHECK(result.total == Approx(12 * kMs).margin(1e-9));
  CHECK(result.workers[0].steps == 3);
  CHECK(result.workers[1].steps == 1);
}

TEST_CASE("with stealing the rate is the sum of the workers' rates", "[stealing]") {
  // 1/4 + 1/5 + 1/6.4 + 1/10 steps per ms; one iteration is 4 steps. At most a step of each is unfinished at the end.
  const Star star(4, 1e9, 0);
  const std::vector<double> slowdown{1, 1.25, 1.6, 2.5};
  const double rate = (1 / 4.0 + 1 / 5.0 + 1 / 6.4 + 1 / 10.0) / kMs;
  for (const bool exact : {true, false}) {
    const ExecutionResult result = simulate(
        star.cluster(), free_workers(4),
        {.iterations = 3000, .shards = Shards::stealing, .exact = exact, .slowdown = slowdown, .patience = 10'000});
    CHECK(result.iteration == Approx(4 / rate).epsilon(1e-3));
    CHECK(result.total == Approx(4 * 3000 / rate).epsilon(2e-3));
    CHECK(result.exact == exact);
    CHECK((result.iterations_simulated == 3000) == exact);
  }
}

TEST_CASE("ranks that wait for each other have no common pool", "[stealing]") {
  CyclicTaskGraph graph = free_workers(3);
  CHECK(graph.ranks_are_independent());
  const TaskId join = graph.compute_for(graph.add_group("one", {0}), QueueId::none, Seconds(0), {"join", ""});
  graph.after(TaskId(1), join);
  CHECK_FALSE(graph.ranks_are_independent());
}

}  // namespace epocast::step_pool_test
