#pragma once

#include "platforms/topology.hpp"

namespace epocast {

/// Throws ConfigError, at the zone or route to blame, unless every host can reach every other. SimGrid itself finds a
/// missing route only when it is used, and then aborts.
void check_reachability(const XmlSource& xml, const Topology& topology);

}  // namespace epocast
