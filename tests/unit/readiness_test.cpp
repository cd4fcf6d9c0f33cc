// A timed marked graph: an edge of lag k starts with k tokens; an instance may fire when each incoming edge holds a
// token and its own previous firing has ended. Every step of the game below is played by hand.
#include <catch2/catch.hpp>

#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/readiness.hpp"

namespace epocast::readiness_test {

namespace {

constexpr std::uint32_t id(TaskId task) { return static_cast<std::uint32_t>(task); }

/// Tasks on first-come queues of their own, so that only explicit edges order them.
struct Game {
  CyclicTaskGraph graph;
  GroupId one = graph.add_group("one", {0});
  GroupId three = graph.add_group("three", {0, 1, 2});

  TaskId task(GroupId group, const char* name) {
    return graph.compute(graph.add_queue(name, group, QueueRole::compute, Discipline::fifo), Seconds(1), {name, ""});
  }
};

/// What becomes ready when the instance ends, as {task, rank} pairs in order.
std::vector<std::pair<std::uint32_t, std::uint32_t>> finish(Readiness& readiness, TaskId task, std::uint32_t rank = 0) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ready;
  readiness.finish({id(task), rank}, [&](Instance i) { ready.emplace_back(i.task, i.rank); });
  return ready;
}

using Ready = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

}  // namespace

TEST_CASE("two tasks take turns around a loop of lag 1", "[readiness]") {
  Game game;
  const TaskId a = game.task(game.one, "a"), b = game.task(game.one, "b");
  game.graph.after(a, b);
  game.graph.after(b, a, 1);
  const CompiledGraph compiled = compile(game.graph, false);
  Readiness readiness(compiled);
  for (int iteration = 0; iteration < 3; ++iteration) {
    CHECK(readiness.ready({id(a), 0}));
    CHECK_FALSE(readiness.ready({id(b), 0}));
    readiness.fire({id(a), 0});
    CHECK(finish(readiness, a) == Ready{{id(b), 0}});
    CHECK_FALSE(readiness.ready({id(a), 0}));
    readiness.fire({id(b), 0});
    CHECK(finish(readiness, b) == Ready{{id(a), 0}});
  }
}

TEST_CASE("a lag of 2 lets the producer run two iterations ahead", "[readiness]") {
  // a -> b lag 0, b -> a lag 2: a may fire twice before b has fired at all, and not three times.
  Game game;
  const TaskId a = game.task(game.one, "a"), b = game.task(game.one, "b");
  game.graph.after(a, b);
  game.graph.after(b, a, 2);
  const CompiledGraph compiled = compile(game.graph, false);
  CHECK(compiled.max_lag == 2);
  Readiness readiness(compiled);
  readiness.fire({id(a), 0});
  CHECK(finish(readiness, a) == Ready{{id(b), 0}, {id(a), 0}});  // others first, then itself
  readiness.fire({id(a), 0});
  CHECK(finish(readiness, a).empty());  // b was ready already, a has used up both tokens
  readiness.fire({id(b), 0});
  CHECK(finish(readiness, b) == Ready{{id(a), 0}, {id(b), 0}});
}

TEST_CASE("an instance does not overlap itself", "[readiness]") {
  Game game;
  const TaskId a = game.task(game.one, "a");
  const CompiledGraph compiled = compile(game.graph, false);
  Readiness readiness(compiled);
  readiness.fire({id(a), 0});
  CHECK_FALSE(readiness.ready({id(a), 0}));  // no edges, but busy
  CHECK(finish(readiness, a) == Ready{{id(a), 0}});
}

TEST_CASE("an edge from three ranks to one joins, from one to three fans out", "[readiness]") {
  Game game;
  const TaskId work = game.task(game.three, "work"), join = game.task(game.one, "join");
  game.graph.after(work, join);
  game.graph.after(join, work, 1);
  const CompiledGraph compiled = compile(game.graph, false);
  CHECK(compiled.instances == 4);
  CHECK(compiled.tokens == 6);
  Readiness readiness(compiled);
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (const std::uint32_t rank : {0U, 1U, 2U}) readiness.fire({id(work), rank});
    CHECK(finish(readiness, work, 2).empty());
    CHECK(finish(readiness, work, 0).empty());
    CHECK_FALSE(readiness.ready({id(join), 0}));
    CHECK(finish(readiness, work, 1) == Ready{{id(join), 0}});
    readiness.fire({id(join), 0});
    CHECK(finish(readiness, join) == Ready{{id(work), 0}, {id(work), 1}, {id(work), 2}});
  }
}

TEST_CASE("edges between equal groups go rank by rank", "[readiness]") {
  Game game;
  const TaskId a = game.task(game.three, "a"), b = game.task(game.three, "b");
  game.graph.after(a, b);
  game.graph.after(b, a, 1);
  const CompiledGraph compiled = compile(game.graph, false);
  Readiness readiness(compiled);
  for (const std::uint32_t rank : {0U, 1U, 2U}) readiness.fire({id(a), rank});
  CHECK(finish(readiness, a, 1) == Ready{{id(b), 1}});
  CHECK_FALSE(readiness.ready({id(b), 0}));
  CHECK_FALSE(readiness.ready({id(b), 2}));
}

TEST_CASE("compiling lays out instances, tokens and queue slots", "[compiled_graph]") {
  Game game;
  const QueueId order = game.graph.add_queue("order", game.three, QueueRole::compute, Discipline::program_order);
  const QueueId mixed = game.graph.add_queue("mixed", game.three, QueueRole::compute, Discipline::fifo);
  const QueueId only = game.graph.add_queue("only", game.three, QueueRole::communication, Discipline::priority);
  const TaskId a = game.graph.compute(order, Seconds(1), {"a", ""}),
               b = game.graph.compute(order, Seconds(1), {"b", ""});
  const TaskId c = game.graph.compute(mixed, Seconds(1), {"c", ""});
  const TaskId gang = game.graph.collective(mixed, {.group = game.three, .bytes = Bytes(1)}, {"gang", ""});
  const TaskId alone = game.graph.collective(only, {.group = game.three, .bytes = Bytes(1)}, {"alone", ""});
  game.graph.after(c, alone, 3);

  SECTION("unfolded: computations have an instance per rank, collectives one") {
    const CompiledGraph compiled = compile(game.graph, false);
    CHECK(compiled.instances == 3 + 3 + 3 + 1 + 1);
    CHECK(compiled.tasks[id(c)].first_instance == 6);
    CHECK(compiled.edges.size() == 3);  // c -> alone, and two of program order
    CHECK(compiled.max_lag == 3);
    CHECK(compiled.tokens == 9);
    CHECK(compiled.tasks[id(a)].first_slot == -1);  // program order needs no slots
    CHECK(compiled.tasks[id(b)].in_count == 1);
    CHECK(compiled.slot_discipline ==
          std::vector{Discipline::fifo, Discipline::fifo, Discipline::fifo, Discipline::priority});
    const auto slots = [&](TaskId task, std::uint32_t rank) {
      std::vector<std::uint32_t> out;
      compiled.for_each_slot({id(task), rank}, [&](std::uint32_t slot) { out.push_back(slot); });
      return out;
    };
    CHECK(slots(c, 2) == std::vector<std::uint32_t>{2});
    CHECK(slots(gang, 0) == std::vector<std::uint32_t>{0, 1, 2});  // shares its queue with c: needs every rank's slot
    CHECK(slots(alone, 0) == std::vector<std::uint32_t>{3});  // only collectives there: one slot stands for all ranks
    CHECK(compiled.device({id(c), 2}) == 2);
  }
  SECTION("folded: rank 0 stands for all") {
    const CompiledGraph compiled = compile(game.graph, true);
    CHECK(compiled.instances == 5);
    CHECK(compiled.tokens == 3);
    CHECK(compiled.slot_discipline == std::vector{Discipline::fifo, Discipline::priority});
    CHECK(compiled.tasks[id(gang)].slots.extent == 1);
  }
  SECTION("a priority queue cannot mix collectives with other tasks") {
    game.graph.compute(only, Seconds(1), {"d", ""});
    CHECK_THROWS_AS(compile(game.graph, false), GraphError);
    CHECK_THROWS_WITH(compile(game.graph, false), Catch::Contains("priority queue 'only' mixes collectives"));
  }
}

}  // namespace epocast::readiness_test
