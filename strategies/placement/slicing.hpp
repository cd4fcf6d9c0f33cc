#pragma once
// ParDNN's graph slicing: disjoint paths that cover the graph (Qararyah 2020, section 4.1.1, algorithm 1).
//
// The first K are critical paths of what is left, with levels computed anew for each: the primary clusters, one for
// each device. The others are paths that follow the highest of the levels as they were after the Kth, and cost O(E)
// together.

#include <span>
#include <vector>

#include "strategies/placement/levels.hpp"

namespace epocast {

/// Paths. Every node is in just one.
struct Clusters {
  int primaries = 0;                 ///< the first so many; some are empty if the graph has too few nodes
  std::vector<std::uint32_t> begin;  ///< cluster c has node[begin[c]] .. node[begin[c + 1] - 1], in topological order
  std::vector<std::uint32_t> node;
  std::vector<std::uint32_t> of;  ///< by node: its cluster

  std::size_t size() const { return begin.size() - 1; }
  std::span<const std::uint32_t> nodes(std::size_t c) const {
    return {node.data() + begin[c], node.data() + begin[c + 1]};
  }
};

/// REQUIRES devices >= 1. O(K (V + E) + V log V).
Clusters slice(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices);

/// Linear clustering (Kim and Browne 1988): levels are computed anew for every path, so that each is a critical path of
/// what is left. Levels that do not change are not computed again; the worst case stays O(V (V + E)).
Clusters linear_clustering(const PlacementGraph& graph, std::span<const Ticks> transfer);

}  // namespace epocast
