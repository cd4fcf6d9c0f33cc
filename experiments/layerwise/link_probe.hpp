#pragma once
// What a platform's links carry, as simple as equation 1 of DeePa needs it.

#include <vector>

#include "sim/cluster.hpp"
#include "sim/simgrid/engine.hpp"
#include "strategies/layerwise/cost_tables.hpp"

namespace epocast {

/// What the links between workers carry: in a node as the slowest route between two of its devices; towards other nodes
/// as the slowest link that all routes out of the node share.
LinkRates probe_links(SimEngine& engine, const Cluster& cluster, const std::vector<DeviceId>& workers);

}  // namespace epocast
