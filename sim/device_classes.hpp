#pragma once
// Devices that a folded run need not tell apart.
//
// In a folded run the first rank of a group stands for all of its ranks. What it does, every device of the group does
// at the same time; but a device may be in other groups too, and then its time differs from its neighbours'. Devices
// that are in the same groups spend their time in the same way: one account for each such class of devices is enough,
// and an average over devices counts it as often as the class has members.

#include <vector>

#include "sim/task_graph.hpp"

namespace epocast {

class DeviceClasses {
 public:
  explicit DeviceClasses(const CyclicTaskGraph& graph);

  /// One device of each class that is in the group.
  const std::vector<DeviceId>& representatives(GroupId group) const { return of_group_[CyclicTaskGraph::index(group)]; }
  /// How many devices a representative stands for.
  int size(DeviceId representative) const { return size_[static_cast<std::size_t>(representative)]; }

 private:
  std::vector<std::vector<DeviceId>> of_group_;
  std::vector<int> size_;  ///< by device; 0 for those that represent nobody
};

}  // namespace epocast
