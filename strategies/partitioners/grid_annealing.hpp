#pragma once
// Partitions the fine-grain hypergraph of a network of layers by the shape of its grids: rectangles are cheap, because
// a part with r rows and c columns of a layer takes part in r + c nets only.
//
// A start tiles each layer with the parts that it fills, strip by strip ("jagged" rectangles), on rough grids of a few
// bundles of maps; annealing moves row and column segments between parts; the best are refined on fine grids, and so is
// a coarse-grain partition.
// Scope: networks without element-wise additions between layers. Limits: a heuristic; maps beyond 64 per layer move in
// bundles.

#include "strategies/partitioners/grid_state.hpp"

namespace epocast {

/// The best partition of fine_grain(network) that `starts` searches from tilings of three sizes of grids, and one from
/// each of `coarse` (partitions of coarse_grain(network)), find. Throws PartitionError if none is within the limit.
Partition partition_grids(const FilterNetwork& network, const PartitionOptions& options,
                          const std::vector<Partition>& coarse = {});

/// The best partition of fine_grain(network) that starts from tilings and from coarse-grain partitions lead to. A
/// network with element-wise sums gets the best coarse-grain partition instead, with a filter's channels kept together;
/// so does any network under another objective than connectivity. Throws PartitionError as check_partition_options does
/// for the fine grain.
Partition partition_fine_grain(const FilterNetwork& network, const PartitionOptions& options);

/// Gives each layer, in order, to parts in order, each up to its limit, and tiles each layer's grid with what it got. A
/// strip is divided into whole rows, so that loads are a little off, or `to_the_cell`, so that borders have a step.
void tile_grids(GridState& state, const std::vector<double>& limits, bool to_the_cell);

}  // namespace epocast
