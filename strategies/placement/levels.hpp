#pragma once
// Top and bottom levels of nodes (Sinnen 2007, section 4.4; Qararyah 2020, table 4.2).

#include <span>
#include <vector>

#include "strategies/placement/placement_graph.hpp"

namespace epocast {

struct Levels {
  std::vector<Ticks> top;     ///< longest path from a source to the node, without the node
  std::vector<Ticks> bottom;  ///< longest path from the node to a sink, with the node

  Ticks weighted(std::size_t n) const { return top[n] + bottom[n]; }
};

/// Levels of the nodes for which `left` is true; the others and their edges count as removed, and have level 0.
/// `transfer` has a time by edge. O(V + E).
void compute_levels(const PlacementGraph& graph, std::span<const Ticks> transfer, const std::vector<char>& left,
                    Levels& levels);
/// Of the whole graph.
Levels compute_levels(const PlacementGraph& graph, std::span<const Ticks> transfer);

/// Transfer times under a placement: 0 between nodes of one device.
std::vector<Ticks> placed_transfer_times(const PlacementGraph& graph, std::span<const Ticks> transfer,
                                         const Placement& placement);

/// The length of the longest path, with transfers.
Ticks critical_path_length(const Levels& levels);

/// The longest path among nodes for which `left` is true, from `levels` of just those. From each node it goes to the
/// reader whose path down is longest; of equal ones, to the first. Empty if none is left.
std::vector<std::uint32_t> critical_path(const PlacementGraph& graph, std::span<const Ticks> transfer,
                                         const std::vector<char>& left, const Levels& levels);

}  // namespace epocast
