#pragma once
// What a partition makes the parts send each other. Three ways of counting:
//
// connectivity      each feature map goes once to every other part that reads it (cut_cost of hypergraph.hpp).
// gather_broadcast  Eserol 2019, decoded from Tables 5.4, 5.6 and 5.8: the unpooled maps of a layer are gathered in one
//                   part, its root, and the pooled ones sent from there to every other part that has some of a layer
//                   that reads them. The root of a layer that is split is the part with the first vertex that reads it:
//                   a framework puts a layer's output together where it goes on. If nobody reads it, the part with its
//                   first vertex.
// message_bytes     what messages carry in training: fp32 values, each feature map forwards once to every other part
//                   that reads it, and its gradient back from each of them. Partial sums likewise.

#include "sim/quantity.hpp"
#include "strategies/partitioners/filter_network.hpp"

namespace epocast {

/// How much of each layer each part has.
struct LayerShares {
  std::vector<std::vector<double>> share;  ///< [layer][part], adds up to 1 over parts
  std::vector<int> root;                   ///< [layer]: the part that gathers it
};

/// Shares of a partition of coarse_grain(network) or of fine_grain(network).
LayerShares coarse_shares(const FilterNetwork& network, const Partition& partition);
LayerShares fine_shares(const FilterNetwork& network, const Partition& partition);
/// Every layer split evenly, whether or not its filters can be (Eserol 2019, Tables 5.3 and 5.4); root: part 0.
LayerShares even_shares(const FilterNetwork& network, int parts);

struct GatherBroadcast {
  double volume = 0;             ///< in the network's unit of `sent` and `raw`
  double largest_broadcast = 0;  ///< of one layer, without gathering: the thesis' "max communication"
};

GatherBroadcast gather_broadcast(const FilterNetwork& network, const LayerShares& shares);

/// Bytes of one training step for a connectivity volume counted in values: 4 B forwards and as many back.
Bytes message_bytes(double volume_in_values);

}  // namespace epocast
