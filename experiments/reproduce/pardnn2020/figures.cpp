#include "experiments/reproduce/pardnn2020/figures.hpp"

#include <vector>

#include "strategies/placement/mapping.hpp"
#include "strategies/placement/replay.hpp"

namespace epocast::pardnn2020 {
namespace {

enum Node : std::uint32_t { A, B, C, D, E, F, G, H, I, J, K, L };

}  // namespace

PlacementGraph figure_4_2_graph() {
  PlacementGraph graph;
  for (const int units : {1, 2, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1}) graph.add_node(units * kFigureUnit, 0);
  graph.set_edges(std::vector<PlacementEdge>{{A, B, 2},
                                             {A, C, 2},
                                             {A, D, 2},
                                             {B, E, 2},
                                             {C, F, 1},
                                             {D, I, 1},
                                             {E, G, 3},
                                             {F, G, 2},
                                             {G, I, 2},
                                             {A, H, 3},
                                             {H, I, 3},
                                             {G, J, 2},
                                             {J, L, 3},
                                             {I, K, 3},
                                             {K, L, 3}});
  return graph;
}

PlacementMachine figure_4_2_machine() { return {2, 0, kTicksPerSecond / static_cast<double>(kFigureUnit), 0}; }

Figure42 figure_4_2() {
  const PlacementGraph graph = figure_4_2_graph();
  const PlacementMachine machine = figure_4_2_machine();
  const std::vector<Ticks> transfer = transfer_times(graph, machine);
  const Clusters clusters = slice(graph, transfer, 2);
  const Placement level_aware = map_clusters(graph, transfer, clusters, compute_levels(graph, transfer).top, 2);
  // What the initial merging has placed stays; D, then H, go to the device with less work in all.
  Placement guided = level_aware;
  Ticks load[2] = {0, 0};
  for (std::uint32_t n = A; n <= L; ++n)
    if (n != D && n != H) load[guided[n]] += graph.time[n];
  for (const std::uint32_t n : {D, H}) {
    guided[n] = load[1] < load[0] ? 1 : 0;
    load[guided[n]] += graph.time[n];
  }
  const auto units = [&](const Placement& placement) {
    return static_cast<double>(replay(graph, machine, placement).makespan) / static_cast<double>(kFigureUnit);
  };
  return {units(level_aware), units(guided)};
}

PlacementGraph figure_4_3_graph() {
  PlacementGraph graph;
  const double memory[] = {1, 5, 1, 1, 2, 2, 1};
  for (const double bytes : memory) graph.add_node(kFigureUnit, bytes);
  std::vector<PlacementEdge> edges;
  const std::pair<Node, Node> pairs[] = {{A, B}, {A, C}, {A, D}, {A, E}, {C, F}, {D, F}, {E, F}, {B, G}, {F, G}};
  for (const auto& [from, to] : pairs) edges.push_back({from, to, memory[from]});
  graph.set_edges(edges);
  return graph;
}

double figure_4_3_peak(bool first_schedule) {
  const PlacementGraph graph = figure_4_3_graph();
  const std::vector<std::uint32_t> order = first_schedule ? std::vector<std::uint32_t>{A, C, D, E, F, B, G}
                                                          : std::vector<std::uint32_t>{A, B, C, D, E, F, G};
  std::vector<Ticks> priority(graph.size());
  for (std::size_t i = 0; i < order.size(); ++i) priority[order[i]] = static_cast<Ticks>(order.size() - i);
  const Placement one(graph.size(), 0);
  const ReplayResult result =
      replay(graph, PlacementMachine{}, one, {.order = QueueOrder::priority, .priority = priority});
  return memory_peaks(residences(graph, one, result), 1).front().bytes;
}

}  // namespace epocast::pardnn2020
