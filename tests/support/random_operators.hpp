#pragma once
// Random operator graphs, small enough for brute force or as large as wanted.

#include <algorithm>
#include <random>
#include <vector>

#include "strategies/placement/placement_graph.hpp"

namespace epocast::testing {

/// Ticks that random times and transfers are multiples of.
inline constexpr Ticks kUnit = 1'000'000;

/// Nodes of 1 to 10 units, with up to three inputs each from the `window` nodes before it, of 1 to 10 bytes; every
/// tenth edge is control only. A machine with a rate of 1 byte a unit makes transfers as long as nodes.
inline PlacementGraph random_operators(std::mt19937& random, std::size_t nodes, std::size_t window,
                                       bool with_groups = false) {
  PlacementGraph graph;
  std::vector<PlacementEdge> edges;
  const auto up_to = [&](std::size_t most) { return random() % most; };
  for (std::uint32_t n = 0; n < nodes; ++n) {
    const bool variable = with_groups && n < nodes / 5;
    graph.add_node(variable ? 0 : static_cast<Ticks>(1 + up_to(10)) * kUnit, static_cast<double>(1 + up_to(10)),
                   variable ? Lifetime::residual : Lifetime::normal, variable ? static_cast<std::int32_t>(n) : -1);
    if (variable) ++graph.groups;
    const std::size_t inputs = variable ? 0 : up_to(4);
    std::vector<std::uint32_t> from;
    for (std::size_t i = 0; i < inputs && n > 0; ++i)
      from.push_back(static_cast<std::uint32_t>(n - 1 - up_to(std::min<std::size_t>(n, window))));
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (const std::uint32_t f : from) edges.push_back({f, n, up_to(10) == 0 ? 0 : graph.memory[f]});
  }
  graph.set_edges(edges);
  return graph;
}

/// So that a byte takes a unit.
inline PlacementMachine unit_machine(int devices, double memory = 0) {
  return {devices, 0, kTicksPerSecond / static_cast<double>(kUnit), memory};
}

}  // namespace epocast::testing
