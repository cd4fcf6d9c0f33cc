#pragma once
// What a group of ranks sees of the network: whether its links form a star, and the alpha and beta of its ring.

#include <vector>

#include "sim/cluster.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// The network between the ranks of a group.
struct GroupNetwork {
  /// Each rank has one uplink and one downlink of its own, and every route is one of each: permutations never contend.
  bool star = false;
  /// A star whose uplinks, downlinks and latencies are all equal: ranks are interchangeable.
  bool uniform = false;
  double alpha = 0;  ///< s: the largest latency between neighbours of the ring
  double beta = 0;   ///< s/B of a ring step, its own sharing of links included
};

/// Examines the routes from each rank to its next two neighbours in the ring. `hosts` in rank order, at least two.
GroupNetwork examine_network(SimEngine& engine, const std::vector<int>& hosts);

}  // namespace epocast
