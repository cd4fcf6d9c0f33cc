// Which queues of a grid's ranks serve their tasks in the same order on every rank.
#include <catch2/catch.hpp>

#include "sim/service_symmetry.hpp"

namespace epocast::service_symmetry_test {

namespace {

constexpr Axis kRows{2, 2}, kColumns{1, 2}, kAlone{1, 1};  // of a grid of 2 x 2 ranks

/// Two tasks of one queue, each behind a sum along an axis, or behind something of its own rank.
bool served_alike(Axis first, Axis second, Discipline discipline = Discipline::fifo) {
  CyclicTaskGraph graph;
  const GroupId grid = graph.add_group("grid", {0, 1, 2, 3});
  const QueueId queue = graph.add_queue("work", grid, QueueRole::compute, discipline);
  for (const Axis axis : {first, second}) {
    const Collective sum{.algorithm = CollectiveAlgorithm::ring, .group = grid, .bytes = Bytes(1e6)};
    const TaskId before = axis.extent > 1 ? graph.collective_along(axis, QueueId::none, sum, {"sum", ""})
                                          : graph.compute_for(grid, QueueId::none, Seconds(1), {"other", ""});
    const TaskId task = graph.compute(queue, Seconds(1), {"work", ""});
    graph.after(before, task, 0);
    graph.after(task, before, 1);
  }
  return ranks_are_served_alike(graph);
}

}  // namespace

TEST_CASE("ranks serve alike what becomes ready in one way", "[task graph][axis]") {
  CHECK(served_alike(kAlone, kAlone));
  CHECK(served_alike(kRows, kRows));
  CHECK(served_alike(kColumns, kColumns));
}

TEST_CASE("ranks may serve in other orders what becomes ready with other ranks", "[task graph][axis]") {
  CHECK_FALSE(served_alike(kRows, kColumns));
  CHECK_FALSE(served_alike(kAlone, kRows));
  CHECK_FALSE(served_alike(kColumns, kAlone));
  CHECK_FALSE(served_alike(kRows, kColumns, Discipline::priority));
  CHECK(served_alike(kRows, kColumns, Discipline::program_order));
}

}  // namespace epocast::service_symmetry_test
