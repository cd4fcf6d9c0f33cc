// A task graph is checked before anything is simulated: every way in which a strategy can build nonsense has a message
// that names the culprit. Each case below makes one mistake in an otherwise valid graph.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "sim/task_graph.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::task_graph_test {

using testing::cluster_of;

namespace {

/// Three workers of four devices that compute, and a server.
struct Fixture {
  CyclicTaskGraph graph;
  GroupId workers = graph.add_group("workers", {0, 1, 2});
  GroupId server = graph.add_group("server", {3});
  QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  QueueId serve = graph.add_queue("serve", server, QueueRole::server, Discipline::fifo);
  TaskId forward = graph.compute(compute, Seconds(1), {"forward", "a"});

  std::string problem() const {
    try {
      graph.validate(cluster_of(4));
    } catch (const GraphError& error) {
      return error.what();
    }
    return "";
  }
};

struct Mistake {
  std::string message;  ///< must be part of the error
  std::function<void(Fixture&)> make;
};

const double kNan = std::nan("");

const std::vector<Mistake> kMistakes = {
    {"group 'nobody' has no devices", [](Fixture& f) { f.graph.add_group("nobody", {}); }},
    {"group 'far' names device 4, but platform 'test' has devices 0..3",
     [](Fixture& f) { f.graph.add_group("far", {4}); }},
    {"group 'low' names device -1", [](Fixture& f) { f.graph.add_group("low", {-1}); }},
    {"group 'twins' has device 1 twice",
     [](Fixture& f) {
       f.graph.add_group("twins", {1, 2, 1});
     }},
    {"queue 'lost' has no group",
     [](Fixture& f) { f.graph.add_queue("lost", GroupId(9), QueueRole::compute, Discipline::fifo); }},
    {"'update a' of 3 ranks is on queue 'two' of 2 ranks",
     [](Fixture& f) {
       const GroupId two = f.graph.add_group("two", {0, 1});
       const QueueId queue = f.graph.add_queue("two", two, QueueRole::compute, Discipline::fifo);
       f.graph.compute_for(f.workers, queue, Seconds(1), {"update", "a"});
     }},
    {"'update a' of 3 ranks shares the one queue 'one', which has no program order among ranks",
     [](Fixture& f) {
       const QueueId queue = f.graph.add_queue("one", f.server, QueueRole::server, Discipline::program_order);
       f.graph.compute_for(f.workers, queue, Seconds(1), {"update", "a"});
     }},
    {"computation 'update a' is on no queue",
     [](Fixture& f) {
       f.graph.compute_for(f.workers, QueueId::none, Seconds(1), {"update", "a"});
     }},
    {"'forward a' names an unknown parameter store",
     [](Fixture& f) {
       f.graph.set_version_effect(f.forward, {StoreId(0), VersionEffect::read_at_start});
     }},
    {"computation 'forward b' takes -1 s",
     [](Fixture& f) {
       f.graph.compute(f.compute, Seconds(-1), {"forward", "b"});
     }},
    {"computation 'forward b' takes inf s",
     [](Fixture& f) {
       f.graph.compute(f.compute, Seconds(INFINITY), {"forward", "b"});
     }},
    {"computation 'forward b' takes nan s",
     [](Fixture& f) {
       f.graph.compute(f.compute, Seconds(kNan), {"forward", "b"});
     }},
    {"transfer 'push a' has -1 bytes",
     [](Fixture& f) {
       f.graph.transfer(f.workers, QueueId::none, {f.workers, f.server, Bytes(-1)}, {"push", "a"});
     }},
    {"transfer 'push a' of 3 ranks has an end of another size",
     [](Fixture& f) {
       const GroupId two = f.graph.add_group("two", {0, 1});
       f.graph.transfer(f.workers, QueueId::none, {f.workers, two, Bytes(1)}, {"push", "a"});
     }},
    {"transfer 'push a' is from every device to itself",
     [](Fixture& f) {
       f.graph.transfer(f.workers, QueueId::none, {f.workers, f.workers, Bytes(1)}, {"push", "a"});
     }},
    {"collective 'all-reduce a' has inf bytes",
     [](Fixture& f) {
       f.graph.collective(f.compute, {.group = f.workers, .bytes = Bytes(INFINITY)}, {"all-reduce", "a"});
     }},
    {"collective 'all-reduce a' has 1 bytes, gamma -1",
     [](Fixture& f) {
       f.graph.collective(f.compute, {.group = f.workers, .bytes = Bytes(1), .gamma = -1}, {"all-reduce", "a"});
     }},
    {"collective 'all-reduce a' is over a group of one rank ('server')",
     [](Fixture& f) {
       f.graph.collective(f.serve, {.group = f.server, .bytes = Bytes(1)}, {"all-reduce", "a"});
     }},
    {"collective 'exchange a': ring cannot do all_to_all",
     [](Fixture& f) {
       f.graph.collective(f.compute, {.op = CollectiveOp::all_to_all, .group = f.workers, .bytes = Bytes(1)},
                          {"exchange", "a"});
     }},
    {"an edge names an unknown task", [](Fixture& f) { f.graph.after(f.forward, TaskId(7)); }},
    {"edge 'forward a' -> 'forward a' has lag -1", [](Fixture& f) { f.graph.after(f.forward, f.forward, -1); }},
    {"edge 'forward a' -> 'forward b' is between 3 and 2 ranks",
     [](Fixture& f) {
       const GroupId two = f.graph.add_group("two", {0, 1});
       const QueueId queue = f.graph.add_queue("two", two, QueueRole::compute, Discipline::fifo);
       f.graph.after(f.forward, f.graph.compute(queue, Seconds(1), {"forward", "b"}));
     }},
    {"edge 'forward a' -> 'all-reduce a' is between 3 and 2 ranks",
     [](Fixture& f) {
       const GroupId two = f.graph.add_group("two", {0, 1});
       const QueueId queue = f.graph.add_queue("two", two, QueueRole::communication, Discipline::fifo);
       f.graph.after(f.forward, f.graph.collective(queue, {.group = two, .bytes = Bytes(1)}, {"all-reduce", "a"}));
     }},
    {"wait for each other within one iteration: 'forward a' -> 'forward a'",
     [](Fixture& f) { f.graph.after(f.forward, f.forward, 0); }},
};

}  // namespace

TEST_CASE("a task graph without mistakes is valid", "[task_graph]") { CHECK(Fixture().problem().empty()); }

TEST_CASE("a task graph needs tasks", "[task_graph]") {
  CHECK_THROWS_WITH(CyclicTaskGraph().validate(cluster_of(1)), "the task graph has no tasks");
}

TEST_CASE("every mistake in a task graph is named", "[task_graph]") {
  for (const Mistake& mistake : kMistakes) {
    Fixture fixture;
    mistake.make(fixture);
    CHECK_THAT(fixture.problem(), Catch::Contains(mistake.message));
  }
}

TEST_CASE("a cycle without lag is found through program order", "[task_graph]") {
  // On a program-order queue b runs after a. An edge b -> a of lag 0 closes a cycle; of lag 1 it is implied anyway.
  for (const int lag : {0, 1}) {
    Fixture f;
    const TaskId second = f.graph.compute(f.compute, Seconds(1), {"forward", "b"});
    f.graph.after(second, f.forward, lag);
    if (lag == 0) {
      CHECK_THAT(f.problem(),
                 Catch::Contains("'forward a' -> 'forward b' -> 'forward a'; one of these edges needs a lag of 1"));
    } else {
      CHECK(f.problem().empty());
    }
  }
}

TEST_CASE("program order links a queue's tasks into a ring of lag 1", "[task_graph]") {
  Fixture f;
  const TaskId b = f.graph.compute(f.compute, Seconds(1), {"forward", "b"});
  const TaskId c = f.graph.compute(f.compute, Seconds(1), {"forward", "c"});
  // A first-come queue implies nothing.
  f.graph.compute_for(f.workers, f.serve, Seconds(1), {"update", "a"});
  const std::vector<Edge> edges = f.graph.edges_with_program_order();
  REQUIRE(edges.size() == 3);
  const auto is = [](const Edge& e, TaskId before, TaskId after, int lag) {
    return e.before == before && e.after == after && e.lag == lag;
  };
  CHECK(is(edges[0], f.forward, b, 0));
  CHECK(is(edges[1], b, c, 0));
  CHECK(is(edges[2], c, f.forward, 1));
}

TEST_CASE("program order adds nothing where edges say the same", "[task_graph]") {
  Fixture f;
  const QueueId exchanges = f.graph.add_queue("exchanges", f.workers, QueueRole::communication, Discipline::fifo);
  const TaskId sum = f.graph.collective(exchanges, {.group = f.workers, .bytes = Bytes(8)}, {"all-reduce", "a"});
  const TaskId b = f.graph.compute(f.compute, Seconds(1), {"forward", "b"});
  const TaskId c = f.graph.compute(f.compute, Seconds(1), {"forward", "c"});
  const TaskId served = f.graph.compute_for(f.server, f.serve, Seconds(1), {"update", "a"});
  const TaskId d = f.graph.compute(f.compute, Seconds(1), {"forward", "d"});
  const auto implied = [&f](TaskId before, TaskId after) {
    const std::vector<Edge>& all = f.graph.edges_with_program_order();
    return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(f.graph.edges().size()), all.end(),
                       [&](const Edge& e) { return e.before == before && e.after == after; });
  };
  CHECK(implied(f.forward, b));
  f.graph.after(f.forward, sum);
  f.graph.after(sum, b);
  CHECK_FALSE(implied(f.forward, b));  // by way of the sum
  f.graph.after(b, c);
  CHECK_FALSE(implied(b, c));  // directly
  f.graph.after(c, served);
  f.graph.after(served, d);
  CHECK(implied(c, d));  // a task of other ranks may wait for some of them
  f.graph.after(sum, d, 1);
  CHECK(implied(d, f.forward));
}

TEST_CASE("labels read as in the field", "[task_graph]") {
  CHECK(Label{"forward", "conv1"}.text() == "forward conv1");
  CHECK(Label{"all-reduce", ""}.text() == "all-reduce");
  CHECK(Label{"backward", "stage 2", 5}.text() == "backward stage 2 #5");
  CHECK(Label{"", "conv1"}.text() == "conv1");
}

}  // namespace epocast::task_graph_test
