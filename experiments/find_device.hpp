#pragma once
// Devices by their hosts' names in a study.

#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

/// The device whose host `node` names. Throws ConfigError with the nearest name if the platform has none.
DeviceId find_device(const Cluster& cluster, const ConfigNode& node);

}  // namespace epocast
