#include "sim/cluster.hpp"

#include <algorithm>

namespace epocast {

bool Cluster::homogeneous() const {
  const auto equals_first = [this](const Device& device) {
    const Device& first = devices.front();
    return device.model == first.model && device.cores == first.cores && device.peak_rate == first.peak_rate &&
           device.memory_bandwidth == first.memory_bandwidth && device.memory == first.memory;
  };
  return std::ranges::all_of(devices, equals_first);
}

}  // namespace epocast
