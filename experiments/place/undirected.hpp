#pragma once
// Graph partitioners of others on the operator graph without its directions: loads as vertex weights, transfers as edge
// weights. What they balance is all work, not the work of a moment (Qararyah 2020, section 2.2.3).

#include <span>

#include "strategies/placement/placement_graph.hpp"

namespace epocast {

/// K-way METIS with default options. Throws ConfigError if this epocast was built without it, or it fails.
Placement place_with_metis(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices);
/// Scotch with its default strategy and an imbalance of at most 5 %. Throws ConfigError likewise.
Placement place_with_scotch(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices);

}  // namespace epocast
