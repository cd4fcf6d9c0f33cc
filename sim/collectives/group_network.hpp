#pragma once
// What a group of ranks sees of the network: whether its links form a star, the alpha and beta of its ring, and whether
// several rings carry more.

#include <vector>

#include "sim/cluster.hpp"
#include "sim/collectives/ring_search.hpp"
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
  bool one_node = false;
  /// Rings inside the nodes that together carry more than one in rank order: permutations of the group's ranks, each
  /// node's among themselves, the same on every node. Empty where there are none: on a star, for one.
  std::vector<Ring> rings;
  /// One ring that carries more than the one in rank order, in the same form; none or one.
  std::vector<Ring> best_ring;

  /// The `count` rings that carry the most; 0: as many as help. Empty: one, in rank order.
  std::vector<Ring> choose_rings(int count) const;
};

/// Examines the routes from each rank to its next two neighbours in the ring and, if `node_of` (the node of each rank)
/// has 3 to kMaxRingSearch ranks on every node and they form no star, those between all ranks of a node. `hosts` in
/// rank order, at least two.
GroupNetwork examine_network(SimEngine& engine, const std::vector<int>& hosts, const std::vector<int>& node_of);

}  // namespace epocast
