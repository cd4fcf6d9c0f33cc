// A placed graph in the network simulator comes to what the replay says, where both mean the same links: two devices,
// of which each sends one transfer at a time.
#include <catch2/catch.hpp>

#include "strategies/placement/placed_step.hpp"
#include "strategies/placement/replay.hpp"
#include "tests/support/random_operators.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::placed_step_test {

using namespace epocast::testing;

TEST_CASE("SimGrid and the replay agree on placed operator graphs") {
  std::mt19937 random(11);
  const Star star(2, 1e6, 0);  // a byte takes a unit
  for (int trial = 0; trial < 30; ++trial) {
    PlacementGraph graph = random_operators(random, 5 + random() % 30, 6);
    for (Ticks& time : graph.time) time += static_cast<Ticks>(random() % 100'000);  // nothing ends at once by chance
    for (std::size_t n = 0; n < graph.size(); n += 7) graph.time[n] = 0;
    Placement placement(graph.size());
    for (std::int16_t& d : placement) d = static_cast<std::int16_t>(random() % 2);
    const ReplayResult replayed = replay(graph, unit_machine(2), placement, {.links = Links::copy_engines});
    const ExecutionResult simulated = simulate(star.cluster(), placed_step(graph, placement, {{0}, {1}}));
    INFO("trial " << trial);
    CHECK(simulated.total == Approx(to_seconds(replayed.makespan)).epsilon(1e-6));
  }
}

TEST_CASE("what takes no time and is joined to nothing is no task") {
  PlacementGraph graph;
  graph.add_node(0, 8);  // a constant that nobody reads
  graph.add_node(1, 8);  // the shortest that there is
  graph.set_edges(std::vector<PlacementEdge>{});
  const CyclicTaskGraph step = placed_step(graph, {0, 0}, {{0}, {1}});
  CHECK(step.tasks().size() == 3);  // with the step's begin and end
}

}  // namespace epocast::placed_step_test
