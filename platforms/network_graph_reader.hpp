#pragma once
// The network of a platform file, where it can be told without SimGrid.

#include <memory>

#include "platforms/topology.hpp"
#include "sim/network_graph.hpp"

namespace epocast {

/// Of a platform that is one zone with Dijkstra routing, in which each <route> is one link, or one star of a <cluster>
/// with split-duplex links; null for all others. Numbers are those that SimGrid reads, to the last bit.
std::shared_ptr<const NetworkGraph> read_network_graph(const XmlSource& xml, const Topology& topology);

}  // namespace epocast
