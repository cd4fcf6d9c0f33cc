#include "sim/device_classes.hpp"

#include <algorithm>
#include <map>

namespace epocast {

DeviceClasses::DeviceClasses(const CyclicTaskGraph& graph) : of_group_(graph.groups().size()) {
  // Refined group by group: devices of one class stay together if the group has them all or none.
  constexpr int kNoClass = -1;
  DeviceId last = -1;
  for (const Group& group : graph.groups())
    for (const DeviceId device : group.devices) last = std::max(last, device);
  std::vector<int> class_of(static_cast<std::size_t>(last + 1), kNoClass);
  int classes = 0;
  for (const Group& group : graph.groups()) {
    std::map<int, int> refined;
    for (const DeviceId device : group.devices) {
      int& old = class_of[static_cast<std::size_t>(device)];
      const auto [found, is_new] = refined.try_emplace(old, classes);
      if (is_new) ++classes;
      old = found->second;
    }
  }

  size_.assign(class_of.size(), 0);
  std::vector<DeviceId> representative(static_cast<std::size_t>(classes), -1);
  for (std::size_t device = 0; device < class_of.size(); ++device) {
    if (class_of[device] == kNoClass) continue;
    DeviceId& known = representative[static_cast<std::size_t>(class_of[device])];
    if (known < 0) known = static_cast<DeviceId>(device);
    ++size_[static_cast<std::size_t>(known)];
  }
  for (std::size_t g = 0; g < of_group_.size(); ++g)
    for (const DeviceId device : graph.groups()[g].devices)
      if (size_[static_cast<std::size_t>(device)] > 0) of_group_[g].push_back(device);
}

}  // namespace epocast
