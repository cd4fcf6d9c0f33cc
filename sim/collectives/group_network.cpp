#include "sim/collectives/group_network.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace epocast {
namespace {

bool nearly_equal(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

/// Ranks have links of their own if the first link of a route depends on its source only, the last on its target only,
/// and no link serves two ranks. Two targets for each source and two sources for each target tell.
bool is_star(SimEngine& engine, const std::vector<int>& hosts) {
  const std::size_t ranks = hosts.size();
  std::vector<int> up(ranks), down(ranks);
  std::unordered_set<int> seen;
  for (std::size_t r = 0; r < ranks; ++r) {
    const Route& route = engine.route(hosts[r], hosts[(r + 1) % ranks]);
    if (route.links.size() != 2) return false;
    up[r] = route.links[0];
    down[(r + 1) % ranks] = route.links[1];
    if (!seen.insert(up[r]).second || !seen.insert(down[(r + 1) % ranks]).second) return false;
  }
  for (std::size_t r = 0; ranks > 2 && r < ranks; ++r) {
    const Route& route = engine.route(hosts[r], hosts[(r + 2) % ranks]);
    if (route.links.size() != 2 || route.links[0] != up[r] || route.links[1] != down[(r + 2) % ranks]) return false;
  }
  return true;
}

}  // namespace

GroupNetwork examine_network(SimEngine& engine, const std::vector<int>& hosts) {
  GroupNetwork network;
  network.star = is_star(engine, hosts);
  network.uniform = network.star;

  std::unordered_map<int, int> ring_flows;
  const std::size_t ranks = hosts.size();
  const double first_latency = engine.route(hosts[0], hosts[1]).latency;
  const double first_bandwidth = engine.route(hosts[0], hosts[1]).bandwidth;
  for (std::size_t r = 0; r < ranks; ++r) {
    const Route& route = engine.route(hosts[r], hosts[(r + 1) % ranks]);
    network.alpha = std::max(network.alpha, route.latency);
    network.uniform = network.uniform && nearly_equal(route.latency, first_latency);
    for (const int link : route.links) {
      const int flows = engine.link_sharing(link) == LinkSharing::kShared ? ++ring_flows[link] : 1;
      network.beta = std::max(network.beta, flows / engine.link_bandwidth(link));
      network.uniform = network.uniform && nearly_equal(engine.link_bandwidth(link), first_bandwidth);
    }
  }
  return network;
}

}  // namespace epocast
