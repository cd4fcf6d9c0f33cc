#include "sim/cluster.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace epocast {

FlopPerSecond Device::matrix_rate(Precision precision) const {
  return precision == Precision::fp32 ? peak_rate : other_rates[precision];
}

bool same_kind(const Device& a, const Device& b) {
  return a.peak_rate == b.peak_rate && a.memory_bandwidth == b.memory_bandwidth && a.memory == b.memory &&
         a.cores == b.cores && a.model == b.model && a.other_rates == b.other_rates;
}

int Cluster::trainers() const { return static_cast<int>(std::ranges::count_if(devices, &Device::trains)); }

bool Cluster::homogeneous() const {
  return std::ranges::all_of(
      devices, [this](const Device& device) { return !device.trains || same_kind(device, devices.front()); });
}

std::vector<DeviceId> Cluster::hosts_of(const std::vector<DeviceId>& of) const {
  std::map<std::string, DeviceId> processors;  // by node
  for (auto d = static_cast<std::size_t>(trainers()); d < devices.size(); ++d)
    processors.emplace(devices[d].node, static_cast<DeviceId>(d));
  std::vector<DeviceId> hosts;
  std::set<DeviceId> known;
  for (const DeviceId device : of) {
    const auto found = processors.find(devices[static_cast<std::size_t>(device)].node);
    const DeviceId host = found == processors.end() ? device : found->second;
    if (known.insert(host).second) hosts.push_back(host);
  }
  return hosts;
}

}  // namespace epocast
