#pragma once
// Recomputation on an operator graph: of the forward pass only what later parts of it read is kept, the rest is
// computed once more when the backward pass comes to it (Chen et al. 2016, "Training Deep Nets with Sublinear Memory
// Cost").

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/placement/placement_graph.hpp"

namespace epocast {

/// Forward nodes by segment, from 0; -1: belongs to no forward pass. `backward[n]`: the segment that a gradient node
/// belongs to, -1 for the others.
struct Segments {
  std::vector<std::int32_t> forward, backward;
  std::int32_t count = 0;
};

/// The graph with recomputation: each segment but the last is computed anew before its gradients, once the first
/// gradients have left the segment behind it. Kept are outputs that other segments read. New nodes come behind those
/// that they wait for; numbers change. O(V log V + E).
PlacementGraph with_recomputation(const PlacementGraph& graph, const Segments& segments);

}  // namespace epocast
