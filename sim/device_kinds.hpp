#pragma once
// Which of some devices are alike, so that what is true of one of a kind need be worked out once.

#include <memory>
#include <span>
#include <vector>

#include "sim/cluster.hpp"

namespace epocast {

class DeviceKinds {
 public:
  /// Of these devices of the cluster: the first has kind 0, the first that is not like it kind 1, and so on.
  /// REQUIRES: at least one device.
  DeviceKinds(const Cluster& cluster, std::span<const DeviceId> devices);

  /// The first device of each kind.
  const std::vector<DeviceId>& examples() const { return examples_; }
  std::size_t count() const { return examples_.size(); }
  bool knows(DeviceId device) const;
  /// REQUIRES: knows(device).
  std::size_t of(DeviceId device) const { return static_cast<std::size_t>(kind_[static_cast<std::size_t>(device)]); }

  bool operator==(const DeviceKinds&) const = default;

 private:
  std::vector<int> kind_;  ///< by device of the cluster; -1: not asked for
  std::vector<DeviceId> examples_;
};

}  // namespace epocast
