#pragma once
// Partitioners that look at loads only. They cut the vertices of coarse_grain() or fine_grain() in their order; maps of
// the input belong to the part of the first vertex that weighs something.

#include "strategies/partitioners/filter_network.hpp"
#include "strategies/partitioners/partition_options.hpp"

namespace epocast {

/// Layers stay whole: the sequence is cut in two so that the larger load per part is smallest, then each half again
/// (Eserol 2019, section 5.1.1). Any number of parts; halves get parts / 2, rounded down and up. A partition of
/// coarse_grain(network). Throws PartitionError for more parts than layers that have work.
Partition layerwise_bisection(const FilterNetwork& network, int parts);

/// Vertices in order to a part until its load exceeds `average`, then to the next (Eserol 2019, sections 5.1.3 and
/// 5.1.4). Late parts may stay empty. `average` 0 stands for total / parts.
Partition fill_in_order(const Hypergraph& graph, int parts, double average = 0);

/// Each layer's filters are dealt out evenly, in order (Eserol 2019, section 5.1.2): filter i of n to part i x parts /
/// n. A partition of coarse_grain(network).
Partition split_horizontally(const FilterNetwork& network, int parts);

}  // namespace epocast
