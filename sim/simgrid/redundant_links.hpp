#pragma once
// Links that never hold up a flow, whatever flows there are: others on its way would do so first.

#include <vector>

#include "sim/simgrid/shortest_routes.hpp"

namespace epocast {

/// What flows find on a link.
struct LinkCapacity {
  double bandwidth = 0;  ///< [B/s]
  bool shared = true;    ///< whether it bounds the sum of the flows, not each
};

/// By link: whether all that crosses it also crosses some other links, all on its near side or all on its far side,
/// that together carry no more than it does: as the uplink of a leaf switch that is as fast as its ports together.
/// Without all of these, rates under max-min fairness are what they are with them.
///
/// `links`: by number. Only points where no route begins or ends tell what crosses their links. `turning`: hosts reach
/// themselves over a switch, where those routes go back to where they came from, as no others do.
std::vector<bool> find_redundant_links(const ShortestRoutes& routes, const std::vector<LinkCapacity>& links,
                                       bool turning = false);

}  // namespace epocast
