// Placement of operator graphs on small graphs worked out by hand.
#include <algorithm>
#include <catch2/catch.hpp>

#include "strategies/placement/checkpointing.hpp"
#include "strategies/placement/list_placement.hpp"
#include "strategies/placement/literal_overflow.hpp"
#include "strategies/placement/overflow.hpp"
#include "strategies/placement/paging.hpp"
#include "strategies/placement/pardnn.hpp"
#include "strategies/placement/placement_graph.hpp"
#include "strategies/placement/refinement.hpp"
#include "tests/support/random_operators.hpp"
#include "workloads/model_reader.hpp"
#include "workloads/operators/operator_graph_builder.hpp"

namespace epocast::placement_test {

using namespace epocast::testing;

namespace {

/// Nodes of so many units and bytes of memory; an edge carries all of its node's output.
PlacementGraph graph_of(const std::vector<std::pair<int, double>>& nodes,
                        const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges) {
  PlacementGraph graph;
  for (const auto& [units, bytes] : nodes) graph.add_node(units * kUnit, bytes);
  std::vector<PlacementEdge> list;
  for (const auto& [from, to] : edges) list.push_back({from, to, nodes[from].second});
  graph.set_edges(list);
  return graph;
}

constexpr std::uint32_t A = 0, B = 1, C = 2, D = 3, E = 4, F = 5, G = 6;

/// A reconstruction of Qararyah 2020, Figure 4.3, whose weights are in the image only: with memory 1, 5, 1, 1, 2, 2, 1
/// both of its schedules have the peaks that the caption states.
PlacementGraph figure_4_3() {
  return graph_of({{1, 1}, {1, 5}, {1, 1}, {1, 1}, {1, 2}, {1, 2}, {1, 1}},
                  {{A, B}, {A, C}, {A, D}, {A, E}, {C, F}, {D, F}, {E, F}, {B, G}, {F, G}});
}

MemoryPeak peak_in_order(const PlacementGraph& graph, const std::vector<std::uint32_t>& order) {
  std::vector<Ticks> priority(graph.size());
  for (std::size_t i = 0; i < order.size(); ++i) priority[order[i]] = static_cast<Ticks>(order.size() - i);
  const Placement one(graph.size(), 0);
  const ReplayResult result =
      replay(graph, unit_machine(1), one, {.order = QueueOrder::priority, .priority = priority});
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(result.start[order[i]] == static_cast<Ticks>(i) * kUnit);
  return memory_peaks(residences(graph, one, result), 1).front();
}

}  // namespace

TEST_CASE("memory depends on the schedule: peaks 8 and 11, as Figure 4.3 states") {
  const PlacementGraph graph = figure_4_3();
  // When G runs, B and F are there: 5 + 2 + 1. Before, when F runs: A + C + D + E + F = 7.
  const MemoryPeak first = peak_in_order(graph, {A, C, D, E, F, B, G});
  CHECK(first.bytes == 8);
  // When F runs, A has gone: B + C + D + E + F = 5 + 1 + 1 + 2 + 2.
  const MemoryPeak second = peak_in_order(graph, {A, B, C, D, E, F, G});
  CHECK(second.bytes == 11);
  CHECK(second.time == 5 * kUnit);
}

TEST_CASE("a transfer waits for copy engines, and both ends hold the tensor until it is over") {
  // A and B of 3 bytes end at 1 and 2 on device 0; C and D read one each on device 1. Apart: they arrive at 4 and 5.
  // Over one engine the second leaves at 4 and arrives at 7.
  const PlacementGraph graph = graph_of({{1, 3}, {1, 3}, {1, 1}, {1, 1}}, {{0, 2}, {1, 3}});
  const Placement placement{0, 0, 1, 1};
  const ReplayResult apart = replay(graph, unit_machine(2), placement);
  CHECK(apart.makespan == 6 * kUnit);
  const ReplayResult queued = replay(graph, unit_machine(2), placement, {.links = Links::copy_engines});
  REQUIRE(queued.transfers.size() == 2);
  CHECK(queued.transfers[1].begin == 4 * kUnit);
  CHECK(queued.transfers[1].end == 7 * kUnit);
  CHECK(queued.makespan == 8 * kUnit);
  const auto all = residences(graph, placement, queued);
  // Device 0 has A from 0 to 4 and B from 1 to 7: six bytes at once. Device 1 has A's copy from 1 to 5, B's from 4 to
  // 8, C from 4 to 5: seven.
  const auto peaks = memory_peaks(all, 2);
  CHECK(peaks[0].bytes == 6);
  CHECK(peaks[1].bytes == 7);
  CHECK(peaks[1].time == 4 * kUnit);
  const auto points = memory_over_time(all, 0);
  REQUIRE(points.size() == 4);  // at 0, 1, 4 and 7
  CHECK(points[2].bytes == 3);
  CHECK(points[3].bytes == 0);
}

TEST_CASE("an output goes to a device once, however many read it there; a part of it goes to its reader") {
  PlacementGraph graph;
  graph.add_node(kUnit, 4);
  for (int i = 0; i < 4; ++i) graph.add_node(kUnit, 0);
  graph.set_edges(std::vector<PlacementEdge>{{0, 1, 4}, {0, 2, 4}, {0, 3, 1}, {0, 4, 1}});
  const ReplayResult result = replay(graph, unit_machine(2), {0, 1, 1, 1, 1});
  REQUIRE(result.transfers.size() == 3);
  CHECK(result.transfers[0].is_whole);
  CHECK_FALSE(result.transfers[1].is_whole);
  CHECK(result.transfers[0].bytes + result.transfers[1].bytes + result.transfers[2].bytes == 6);
  // What says that it carries more than there is, is not what another reader of all of it has already.
  graph.set_edges(std::vector<PlacementEdge>{{0, 1, 4}, {0, 2, 5}, {0, 3, 5}, {0, 4, 0}});
  const ReplayResult more = replay(graph, unit_machine(2), {0, 1, 1, 1, 1});
  REQUIRE(more.transfers.size() == 2);
  CHECK(more.transfers[0].bytes + more.transfers[1].bytes == 9);
}

TEST_CASE("mapping: what cannot hide its transfers joins; what can goes where its moment is free") {
  // Four nodes of 4 units as a diamond. With edges of half a unit its sides run on two devices: one side 4 to 8, its
  // output there at 8.5; the other 4.5 to 8.5, and the last node beside it: 12.5. With edges of 5 one device is
  // best: 16.
  const auto placed = [](double bytes, bool literal) {
    PlacementGraph graph;
    for (int i = 0; i < 4; ++i) graph.add_node(4 * kUnit, bytes);
    graph.set_edges(std::vector<PlacementEdge>{{0, 1, bytes}, {1, 3, bytes}, {0, 2, bytes}, {2, 3, bytes}});
    return pardnn(graph, unit_machine(2), {.literal = literal});
  };
  CHECK(placed(0.5, false).back().makespan == 25 * kUnit / 2);
  CHECK(placed(5, false).back().makespan == 16 * kUnit);
  // By levels the critical path becomes shorter, 12 instead of 13, if the second side goes back to the first device;
  // they do not see that both sides then wait for each other. The literal rule takes that step.
  const std::vector<PlacementStage> literal = placed(0.5, true);
  CHECK(literal.front().makespan == 13 * kUnit);
  CHECK(literal.back().makespan == 16 * kUnit);
  CHECK(placed(5, true).back().makespan == 16 * kUnit);
}

TEST_CASE("groups stay together, and go where their traffic is") {
  PlacementGraph graph;
  graph.groups = 1;
  graph.add_node(0, 8, Lifetime::residual, 0);  // a variable
  graph.add_node(2 * kUnit, 1);                 // reads it
  graph.add_node(5 * kUnit, 1);
  graph.add_node(kUnit, 0, Lifetime::reference, 0);  // updates it
  graph.set_edges(std::vector<PlacementEdge>{{0, 1, 8}, {1, 3, 1}, {2, 3, 1}});
  for (const char* method : {"round robin", "heft", "in turn"}) {
    const std::vector<Ticks> transfer = transfer_times(graph, unit_machine(2));
    const Placement placement = *method == 'r'   ? round_robin(graph, transfer, 2)
                                : *method == 'h' ? heft(graph, transfer, 2)
                                                 : fill_in_turn(graph, transfer, 2);
    INFO(method);
    CHECK(placement[0] == placement[3]);
    CHECK(placement[0] == placement[1]);
  }
}

TEST_CASE("a node to be placed waits for what its operation waits for, and for the memory that views show") {
  const OperatorGraph graph = build_operator_graph(
      parse_model("model: small\ninput: {channels: 2, height: 4, width: 4}\nlayers: [{conv: c, filters: 3, kernel: 3}, "
                  "{relu: r}, {fc: f, units: 3}, {softmax: s}]\n",
                  "m.yaml"),
      2, {});
  const PlacementGraph placed = placement_graph(graph, std::vector<double>(graph.size(), 1e-6));
  const auto runs = [&](std::uint32_t n) { return epocast::runs(graph.phase[n]); };
  int of_views = 0;
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    INFO(graph.operation_of(n));
    std::vector<std::uint32_t> producers, sources;
    for (const std::uint32_t p : graph.producers(n))
      if (runs(n) && runs(p)) producers.push_back(p);
    for (std::uint32_t e = placed.in_begin[n]; e < placed.in_begin[n + 1]; ++e)
      sources.push_back(placed.from[placed.in_edge[e]]);
    // Every producer once; before what a view shows stands the owner of the memory, which is not its producer.
    for (const std::uint32_t p : producers) CHECK(std::ranges::count(sources, p) >= 1);
    for (const std::uint32_t p : sources)
      if (std::ranges::count(producers, p) == 0) {
        ++of_views;
        CHECK(p < n);
        CHECK(placed.memory[p] > 0);
      }
    CHECK(sources.size() <= 2 * producers.size());
    CHECK((producers.empty() ? sources.empty() : !sources.empty()));
  }
  CHECK(of_views > 0);  // the fully connected layer reads the feature map as a vector
}

TEST_CASE("what works in a variable's memory stands where the variable does") {
  const OperatorGraph graph = build_operator_graph(
      parse_model("model: small\ninput: {channels: 4}\nlayers: [{fc: f, units: 3}, {softmax: s}]\n", "m.yaml"), 2,
      {Optimizer::momentum});
  const PlacementGraph placed = placement_graph(graph, std::vector<double>(graph.size(), 1e-6));
  int members = 0, alone = 0;
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    if (graph.lifetime[n] == Lifetime::reference && graph.variable[n] >= 0) {
      ++members;
      CHECK(placed.group[n] >= 0);
      CHECK(placed.group[n] == placed.group[static_cast<std::size_t>(graph.variable[n])]);
    } else if (graph.operation_of(n) != "VariableV2") {
      ++alone;
      CHECK(placed.group[n] == -1);
    }
  }
  CHECK(members > 2);
  CHECK(alone > 2);
  CHECK(placed.groups == 3);  // weights and biases, each with its momentum; the count of steps
}

TEST_CASE("a search on replays stops when its nodes are used up") {
  // Two equal operations without edges on one of two devices; moving one halves the time. Nodes of one replay: 2.
  const PlacementGraph graph = graph_of({{1, 1}, {1, 1}}, {});
  const auto moves = [&](double nodes) {
    Placement placement(2, 0);
    return improve_by_replay(graph, unit_machine(2), {}, nodes, placement);
  };
  CHECK(moves(3.9) == 0);  // the first replay leaves too few for another
  CHECK(moves(4) == 1);
}

TEST_CASE("a search on replays moves the nodes of a group together") {
  // All on one of two devices takes 8 units. C and E do not part, as C's output would travel for 3. A and B are one
  // group: away with both, C and E take 6.
  PlacementGraph graph;
  graph.groups = 1;
  graph.add_node(kUnit, 0, Lifetime::reference, 0);
  graph.add_node(kUnit, 0, Lifetime::reference, 0);
  graph.add_node(3 * kUnit, 3);
  graph.add_node(3 * kUnit, 0);
  graph.set_edges(std::vector<PlacementEdge>{{2, 3, 3}});
  Placement placement(4, 0);
  CHECK(improve_by_replay(graph, unit_machine(2), {}, 1000, placement) == 1);
  CHECK(placement[0] == placement[1]);
  CHECK(placement[2] == placement[3]);
  CHECK(replay(graph, unit_machine(2), placement).makespan == 6 * kUnit);
}

TEST_CASE("what overflows by little is relieved by the cheapest that is enough, not by the best ratio") {
  // Variables of 10 and 4 bytes where 12 fit: the first moves for 5 units, half a unit a byte, the second for 3.
  PlacementGraph graph;
  graph.add_node(5 * kUnit, 10, Lifetime::residual);
  graph.add_node(3 * kUnit, 4, Lifetime::residual);
  graph.set_edges(std::vector<PlacementEdge>{});
  Placement placement(2, 0);
  const OverflowResult result = resolve_overflow(graph, unit_machine(2, 12), {}, placement);
  CHECK(result.fits);
  CHECK(result.moved_nodes == 1);
  CHECK(placement == Placement{0, 1});
}

TEST_CASE("bounds that show that nothing can fit") {
  PlacementGraph graph;
  graph.groups = 1;
  graph.add_node(0, 4, Lifetime::residual, 0);
  graph.add_node(0, 4, Lifetime::residual, 0);
  graph.add_node(kUnit, 6);
  graph.set_edges(std::vector<PlacementEdge>{{0, 2, 4}});
  CHECK(memory_bound(graph, unit_machine(2, 7)).kind == MemoryBound::Kind::group);  // 8 together
  const MemoryBound node = memory_bound(graph, unit_machine(2, 9));                 // 4 and 6 at once
  CHECK(node.kind == MemoryBound::Kind::node);
  CHECK(node.bytes == 10);
  CHECK(node.node == 2);
  CHECK(memory_bound(graph, unit_machine(2, 10)).kind == MemoryBound::Kind::none);
}

TEST_CASE("as written, readers of an output leave one after the other, the last first") {
  // X has to wait for W, and C and D for X; A is there until both have run. At X's moment A and X hold 7 bytes where 6
  // fit, and X may not move: D leaves, which is A's last reader, then C, and A's output with them, within a unit.
  PlacementGraph graph = graph_of({{1, 3}, {2, 0}, {1, 4}, {1, 0}, {1, 0}}, {});
  graph.groups = 1;
  graph.group[2] = 0;
  graph.set_edges(std::vector<PlacementEdge>{{1, 2, 0}, {0, 3, 3}, {2, 3, 0}, {0, 4, 3}, {2, 4, 0}});
  PlacementMachine machine = unit_machine(2, 6);
  machine.bytes_per_second *= 4;
  Placement placement(5, 0);
  const OverflowResult result = resolve_overflow_as_written(graph, machine, {}, placement);
  CHECK(result.fits);
  CHECK(result.moved_nodes == 2);
  CHECK(placement == Placement{0, 0, 0, 1, 1});
}

TEST_CASE("recomputation: a segment's inside is computed again once gradients have left the segment behind it") {
  // x, f1, f2 | f3, f4 and their gradients b4, b3, b2, b1, each of which reads the output before its own node. Only f1
  // is inside its segment: it runs again between b3 and b2, and the step takes 9 units instead of 8.
  PlacementGraph graph;
  graph.add_node(0, 1, Lifetime::residual);
  for (int n = 0; n < 8; ++n) graph.add_node(kUnit, 4);
  const std::uint32_t x = 0, f1 = 1, f2 = 2, f3 = 3, f4 = 4, b4 = 5, b3 = 6, b2 = 7, b1 = 8;
  graph.set_edges(std::vector<PlacementEdge>{{x, f1, 1},
                                             {f1, f2, 4},
                                             {f2, f3, 4},
                                             {f3, f4, 4},
                                             {f4, b4, 4},
                                             {f3, b4, 4},
                                             {b4, b3, 4},
                                             {f2, b3, 4},
                                             {b3, b2, 4},
                                             {f1, b2, 4},
                                             {b2, b1, 4},
                                             {x, b1, 1}});
  const Segments segments{{0, 0, 0, 1, 1, -1, -1, -1, -1}, {-1, -1, -1, -1, -1, 1, 1, 0, 0}, 2};
  const PlacementGraph again = with_recomputation(graph, segments);
  REQUIRE(again.size() == graph.size() + 1);
  CHECK(replay(again, unit_machine(1), Placement(again.size(), 0)).makespan == 9 * kUnit);
  // The copy is behind b3 in the new order, and b2 reads it instead of f1.
  CHECK(again.in_edges(b2).size() == 2);
  CHECK(again.in_edges(b2 + 1).size() == 2);
  CHECK(again.from[again.in_edges(b2 + 1)[1]] == b2);
}

TEST_CASE("paging: the least recently used goes to the host, and is fetched when it is missed") {
  // Three variables of 4 bytes, read in turn, where two fit: each has left when its turn comes again. 3 units of
  // work and 12 bytes at a byte a unit.
  PlacementGraph graph;
  std::vector<PlacementEdge> edges;
  for (int v = 0; v < 3; ++v) graph.add_node(0, 4, Lifetime::residual);
  for (std::uint32_t n = 0; n < 3; ++n) {
    graph.add_node(kUnit, 0);
    edges.push_back({n, n + 3, 4});
  }
  graph.set_edges(edges);
  const PagingLink link{kTicksPerSecond / static_cast<double>(kUnit), 0, 1};
  const PagedStep two = page_step(graph, 8, link);
  CHECK(two.fetched == 12);
  CHECK(two.evicted == 0);  // the host has what nobody wrote
  CHECK(two.makespan == 15 * kUnit);
  CHECK(page_step(graph, 12, link).makespan == 3 * kUnit);
}

}  // namespace epocast::placement_test
