#include "experiments/layerwise/link_probe.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace epocast {

LinkRates probe_links(SimEngine& engine, const Cluster& cluster, const std::vector<DeviceId>& workers) {
  LinkRates out;
  std::vector<int> hosts;
  for (const DeviceId worker : workers)
    hosts.push_back(engine.find_host(cluster.devices[static_cast<std::size_t>(worker)].name));
  const std::vector<int> nodes = node_numbers(cluster, workers);
  double inside = 0, outside = 0;  // of the slowest route; 0: there is none
  std::map<int, std::set<int>> shared;
  std::map<int, int> devices;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    ++devices[nodes[i]];
    for (std::size_t j = 0; j < hosts.size(); ++j) {
      if (i == j) continue;
      const Route& route = engine.route(hosts[i], hosts[j]);
      out.latency = std::max(out.latency, Seconds(route.latency));
      double& slowest = nodes[i] == nodes[j] ? inside : outside;
      slowest = slowest == 0 ? route.bandwidth : std::min(slowest, route.bandwidth);
      if (nodes[i] == nodes[j]) continue;
      const std::set<int> links(route.links.begin(), route.links.end());
      const auto [known, is_new] = shared.try_emplace(nodes[i], links);
      if (!is_new) std::erase_if(known->second, [&](int link) { return !links.contains(link); });
    }
  }
  if (inside == 0 || outside == 0) {  // one node, or one device on each
    out.device = BytesPerSecond(std::max({inside, outside, 1.0}));
    return out;
  }
  out.device = BytesPerSecond(inside);
  out.node_of = nodes;
  double node = std::numeric_limits<double>::infinity();
  for (const auto& [number, links] : shared) {
    double rate = outside * devices[number];
    for (const int link : links) rate = std::min(rate, engine.link_bandwidth(link));
    node = std::min(node, rate);
  }
  out.node = BytesPerSecond(node);
  return out;
}

}  // namespace epocast
