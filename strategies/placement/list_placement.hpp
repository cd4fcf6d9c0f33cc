#pragma once
// Placements that ParDNN is compared with: round robin, HEFT, and filling one device after the other.

#include <span>

#include "strategies/placement/placement_graph.hpp"

namespace epocast {

/// Nodes in topological order to devices in turn (Qararyah 2020, section 6.4.1); groups end up where most of their
/// traffic is.
Placement round_robin(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices);

/// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): nodes by bottom level, each on the device on which
/// it ends first, in gaps between others too (of the next 64 gaps). Sources without work of their own, such as
/// variables and constants, go with their first reader; the rest of a group with its first member.
Placement heft(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices);

/// Fills devices one after the other in topological order, each with an equal share of the memory that lives long:
/// variables, and outputs that some later part of the graph reads once more. What reads such an output for a second
/// time goes where most of what it reads lies, as a backward pass does. Few transfers and even memory, no parallelism.
/// `share`: of the mean that a device may hold before the next one's turn.
Placement fill_in_turn(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices, double share = 1);

}  // namespace epocast
