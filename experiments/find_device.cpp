#include "experiments/find_device.hpp"

#include <string>
#include <vector>

namespace epocast {

DeviceId find_device(const Cluster& cluster, const ConfigNode& node) {
  const std::string name = node.as_string();
  std::vector<std::string> names;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    if (cluster.devices[d].name == name) return static_cast<DeviceId>(d);
    names.push_back(cluster.devices[d].name);
  }
  throw node.error("platform '" + cluster.name + "' has no host '" + name + "'" + name_hint(name, names));
}

}  // namespace epocast
