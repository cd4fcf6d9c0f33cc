#include "sim/device_kinds.hpp"

#include <algorithm>

namespace epocast {

DeviceKinds::DeviceKinds(const Cluster& cluster, std::span<const DeviceId> devices)
    : kind_(cluster.devices.size(), -1) {
  const auto device = [&](DeviceId id) -> const Device& { return cluster.devices[static_cast<std::size_t>(id)]; };
  for (const DeviceId id : devices) {
    const auto found =
        std::ranges::find_if(examples_, [&](DeviceId example) { return same_kind(device(example), device(id)); });
    kind_[static_cast<std::size_t>(id)] = static_cast<int>(found - examples_.begin());
    if (found == examples_.end()) examples_.push_back(id);
  }
}

bool DeviceKinds::knows(DeviceId device) const {
  return device >= 0 && static_cast<std::size_t>(device) < kind_.size() && kind_[static_cast<std::size_t>(device)] >= 0;
}

}  // namespace epocast
