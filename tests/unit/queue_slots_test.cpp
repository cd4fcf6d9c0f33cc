// A queue serves one instance at a time: the first to arrive, or the one of the smallest priority number. A collective
// over ranks whose queues also serve other tasks starts when it has come first on every rank.
#include <catch2/catch.hpp>

#include <vector>

#include "sim/queue_slots.hpp"

namespace epocast::queue_slots_test {

namespace {

constexpr std::uint32_t id(TaskId task) { return static_cast<std::uint32_t>(task); }
using Begun = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// A queue on trial: what begins when somebody enters or leaves.
class Trial {
 public:
  explicit Trial(const CyclicTaskGraph& graph) : compiled_(compile(graph, false)), slots_(compiled_) {}

  Begun enter(TaskId task, std::uint32_t rank = 0, std::uint64_t iteration = 1) {
    Begun begun;
    slots_.enter({id(task), rank}, iteration, [&](Instance i) { begun.emplace_back(i.task, i.rank); });
    return begun;
  }
  Begun leave(TaskId task, std::uint32_t rank = 0) {
    Begun begun;
    slots_.leave({id(task), rank}, [&](Instance i) { begun.emplace_back(i.task, i.rank); });
    return begun;
  }

 private:
  CompiledGraph compiled_;
  QueueSlots slots_;
};

struct OneDevice {
  explicit OneDevice(Discipline discipline) : queue(graph.add_queue("queue", group, QueueRole::compute, discipline)) {}

  TaskId task(const char* name, int priority = 0) {
    const TaskId made = graph.compute(queue, Seconds(1), {name, ""});
    graph.set_priority(made, priority);
    return made;
  }
  CyclicTaskGraph graph;
  GroupId group = graph.add_group("device", {0});
  QueueId queue;
};

}  // namespace

TEST_CASE("first ready, first served", "[queue_slots]") {
  OneDevice device(Discipline::fifo);
  const TaskId a = device.task("a", 9), b = device.task("b", 0), c = device.task("c", 0);
  Trial trial(device.graph);
  CHECK(trial.enter(b) == Begun{{id(b), 0}});
  CHECK(trial.enter(a).empty());
  CHECK(trial.enter(c).empty());
  CHECK(trial.leave(b) == Begun{{id(a), 0}});  // came before c; priorities mean nothing here
  CHECK(trial.leave(a) == Begun{{id(c), 0}});
  CHECK(trial.leave(c).empty());
}

TEST_CASE("the smallest priority number goes first, then the earlier iteration, then the first to come",
          "[queue_slots]") {
  OneDevice device(Discipline::priority);
  const TaskId running = device.task("running"), low = device.task("low", 5), high = device.task("high", -1),
               later = device.task("later", 2), early = device.task("early", 2), tied = device.task("tied", 2);
  Trial trial(device.graph);
  CHECK(trial.enter(running) == Begun{{id(running), 0}});
  CHECK(trial.enter(low).empty());
  CHECK(trial.enter(later, 0, 7).empty());
  CHECK(trial.enter(early, 0, 6).empty());
  CHECK(trial.enter(tied, 0, 6).empty());
  CHECK(trial.enter(high).empty());  // does not interrupt what runs
  CHECK(trial.leave(running) == Begun{{id(high), 0}});
  CHECK(trial.leave(high) == Begun{{id(early), 0}});
  CHECK(trial.leave(early) == Begun{{id(tied), 0}});
  CHECK(trial.leave(tied) == Begun{{id(later), 0}});
  CHECK(trial.leave(later) == Begun{{id(low), 0}});
}

TEST_CASE("ranks on one device's queue are served in turn, on queues of their own at once", "[queue_slots]") {
  CyclicTaskGraph graph;
  const GroupId workers = graph.add_group("workers", {0, 1}), server = graph.add_group("server", {2});
  const QueueId own = graph.add_queue("own", workers, QueueRole::compute, Discipline::fifo);
  const QueueId shared = graph.add_queue("shared", server, QueueRole::server, Discipline::fifo);
  const TaskId local = graph.compute(own, Seconds(1), {"local", ""});
  const TaskId served = graph.compute_for(workers, shared, Seconds(1), {"served", ""});
  Trial trial(graph);
  CHECK(trial.enter(local, 1) == Begun{{id(local), 1}});
  CHECK(trial.enter(local, 0) == Begun{{id(local), 0}});
  CHECK(trial.enter(served, 1) == Begun{{id(served), 1}});
  CHECK(trial.enter(served, 0).empty());
  CHECK(trial.leave(served, 1) == Begun{{id(served), 0}});
}

TEST_CASE("a collective waits for the queues of all its ranks and holds those it has", "[queue_slots]") {
  CyclicTaskGraph graph;
  const GroupId pair = graph.add_group("pair", {0, 1});
  const QueueId queue = graph.add_queue("queue", pair, QueueRole::compute, Discipline::fifo);
  const TaskId work = graph.compute(queue, Seconds(1), {"work", ""}),
               more = graph.compute(queue, Seconds(1), {"more", ""});
  const TaskId gang = graph.collective(queue, {.group = pair, .bytes = Bytes(1)}, {"gang", ""});
  const TaskId next = graph.collective(queue, {.group = pair, .bytes = Bytes(1)}, {"next", ""});
  Trial trial(graph);
  CHECK(trial.enter(work, 0) == Begun{{id(work), 0}});
  CHECK(trial.enter(gang).empty());     // rank 1's slot is won, rank 0's is busy
  CHECK(trial.enter(more, 1).empty());  // behind the collective, which holds the slot
  CHECK(trial.enter(next).empty());
  CHECK(trial.leave(work, 0) == Begun{{id(gang), 0}});  // one instance for all ranks
  CHECK(trial.leave(gang) == Begun{{id(more), 1}});     // rank 0 goes to `next`, which has to wait for rank 1
  CHECK(trial.leave(more, 1) == Begun{{id(next), 0}});
  CHECK(trial.leave(next).empty());
}

TEST_CASE("a queue of collectives alone has one line for all ranks", "[queue_slots]") {
  CyclicTaskGraph graph;
  const GroupId pair = graph.add_group("pair", {0, 1});
  const QueueId queue = graph.add_queue("queue", pair, QueueRole::communication, Discipline::priority);
  const TaskId a = graph.collective(queue, {.group = pair, .bytes = Bytes(1)}, {"a", ""});
  const TaskId b = graph.collective(queue, {.group = pair, .bytes = Bytes(1)}, {"b", ""});
  const TaskId c = graph.collective(queue, {.group = pair, .bytes = Bytes(1)}, {"c", ""});
  graph.set_priority(b, 2);
  graph.set_priority(c, 1);
  Trial trial(graph);
  CHECK(trial.enter(a) == Begun{{id(a), 0}});
  CHECK(trial.enter(b).empty());
  CHECK(trial.enter(c).empty());
  CHECK(trial.leave(a) == Begun{{id(c), 0}});
  CHECK(trial.leave(c) == Begun{{id(b), 0}});
}

}  // namespace epocast::queue_slots_test
