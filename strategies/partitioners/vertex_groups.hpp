#pragma once
// A smaller hypergraph in the place of a large one: vertices that follow each other and look alike become one.
//
// Networks with element-wise sums have no two filters that can stand for one another, since filter i of one layer goes
// with filter i of others. But blocks of filters i to j go together in all layers: a search on blocks sees whole
// layers, where one on filters sees single moves that each cost more than they save.

#include <cstdint>
#include <vector>

#include "strategies/partitioners/hypergraph.hpp"

namespace epocast {

struct VertexGroups {
  Hypergraph graph;           ///< a vertex per group; nets with equal pins are one, those inside a group are left out
  std::vector<int> group_of;  ///< [vertex]

  /// Every vertex in the part of its group: costs what the partition of groups costs.
  Partition expand(const Partition& of_groups) const;
};

/// Cuts each run of vertices with consecutive numbers and equal colours (vertex_colours) into `pieces` groups of nearly
/// equal size, or as many as it has vertices. REQUIRES pieces > 0.
VertexGroups group_vertices(const Hypergraph& graph, const std::vector<std::uint64_t>& colours, int pieces);

}  // namespace epocast
