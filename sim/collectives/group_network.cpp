#include "sim/collectives/group_network.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "sim/rounding.hpp"

namespace epocast {
namespace {

/// Ranks have links of their own if the first link of a route depends on its source only, the last on its target only,
/// and no link serves two ranks. Two targets for each source and two sources for each target tell.
bool is_star(SimEngine& engine, const std::vector<int>& hosts) {
  const std::size_t ranks = hosts.size();
  std::vector<int> up(ranks), down(ranks);
  std::unordered_set<int> seen;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::vector<int>& links = engine.route(hosts[r], hosts[(r + 1) % ranks]).bottlenecks();
    if (links.size() != 2) return false;
    up[r] = links[0];
    down[(r + 1) % ranks] = links[1];
    if (!seen.insert(up[r]).second || !seen.insert(down[(r + 1) % ranks]).second) return false;
  }
  for (std::size_t r = 0; ranks > 2 && r < ranks; ++r) {
    const std::vector<int>& links = engine.route(hosts[r], hosts[(r + 2) % ranks]).bottlenecks();
    if (links.size() != 2 || links[0] != up[r] || links[1] != down[(r + 2) % ranks]) return false;
  }
  return true;
}

/// The ranks of each node, ascending.
std::vector<std::vector<int>> ranks_on_nodes(const std::vector<int>& node_of) {
  std::vector<std::vector<int>> nodes;
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    const auto node = static_cast<std::size_t>(node_of[rank]);
    if (node >= nodes.size()) nodes.resize(node + 1);
    nodes[node].push_back(static_cast<int>(rank));
  }
  return nodes;
}

/// The routes between some hosts. Whatever flows cross a fatpipe, each may have all of it: it counts once for each
/// pair. Without ranks if a route has links of which nothing is known.
PairNetwork pair_network(SimEngine& engine, const std::vector<int>& hosts) {
  PairNetwork network{.ranks = static_cast<int>(hosts.size())};
  std::unordered_map<int, int> shared;  // link -> resource
  for (const int from : hosts)
    for (const int to : hosts) {
      std::vector<int>& resources = network.resources_of.emplace_back();
      network.direct.push_back(false);
      if (from == to) continue;
      const Route& route = engine.route(from, to);
      network.direct.back() = route.links.size() == 1;
      for (const int link : route.bottlenecks()) {
        if (engine.link_sharing(link) == LinkSharing::kOther) return {};
        auto next = static_cast<int>(network.capacity.size());
        if (engine.link_sharing(link) == LinkSharing::kShared) next = shared.try_emplace(link, next).first->second;
        if (next == static_cast<int>(network.capacity.size())) network.capacity.push_back(engine.link_bandwidth(link));
        resources.push_back(next);
      }
    }
  return network;
}

/// What a byte of the vector's blocks costs on the busiest link [s/B] when all nodes' ranks send to their next in each
/// of the rings at once. Rings are orders of a node's local ranks.
double rings_beta(SimEngine& engine, const std::vector<int>& hosts, const std::vector<std::vector<int>>& nodes,
                  const std::vector<Ring>& rings) {
  std::map<std::pair<int, int>, double> parts;  // by source and target host
  for (const std::vector<int>& node : nodes)
    for (const Ring& ring : rings)
      for (std::size_t i = 0; i < node.size(); ++i) {
        const auto from = static_cast<std::size_t>(ring.order[i]);
        const auto to = static_cast<std::size_t>(ring.order[(i + 1) % node.size()]);
        parts[{hosts[node[from]], hosts[node[to]]}] += ring.share;
      }
  double beta = 0;
  std::unordered_map<int, double> load;
  for (const auto& [pair, part] : parts)
    for (const int link : engine.route(pair.first, pair.second).bottlenecks()) {
      double& all = load[link];
      all = engine.link_sharing(link) == LinkSharing::kShared ? all + part : std::max(all, part);
      beta = std::max(beta, all / engine.link_bandwidth(link));
    }
  return beta;
}

/// The ring of a node's local ranks, on every node, as an order of all ranks.
Ring on_all_nodes(const Ring& local, const std::vector<std::vector<int>>& nodes, std::size_t ranks) {
  Ring out{std::vector<int>(ranks), local.share};
  for (const std::vector<int>& node : nodes)
    for (std::size_t i = 0; i < node.size(); ++i)
      out.order[static_cast<std::size_t>(node[i])] = node[static_cast<std::size_t>(local.order[i])];
  return out;
}

void search_rings(SimEngine& engine, const std::vector<int>& hosts, const std::vector<std::vector<int>>& nodes,
                  GroupNetwork& out) {
  const std::size_t size = nodes.front().size();
  if (size < 3 || size > kMaxRingSearch) return;
  for (const std::vector<int>& node : nodes)
    if (node.size() != size) return;
  std::vector<int> first;
  for (const int rank : nodes.front()) first.push_back(hosts[rank]);
  if (is_star(engine, first)) return;  // one ring fills the links of its ranks
  const PairNetwork network = pair_network(engine, first);
  if (network.ranks == 0) return;

  Ring in_rank_order{std::vector<int>(size)};
  std::iota(in_rank_order.order.begin(), in_rank_order.order.end(), 0);
  const double known = rings_beta(engine, hosts, nodes, {in_rank_order});
  const std::vector<Ring> found = find_rings(network);
  const auto raises = [known](double beta) { return beta < known * (1 - 1e-9); };
  if (raises(rings_beta(engine, hosts, nodes, found)))
    for (const Ring& ring : found) out.rings.push_back(on_all_nodes(ring, nodes, hosts.size()));
  double best = known * (1 - 1e-9);
  for (const Ring& ring : found) {
    const double beta = rings_beta(engine, hosts, nodes, {{ring.order, 1}});
    if (beta >= best) continue;
    best = beta;
    out.best_ring = {on_all_nodes({ring.order, 1}, nodes, hosts.size())};
  }
}

}  // namespace

std::vector<Ring> GroupNetwork::choose_rings(int count) const {
  if (count == 1) return best_ring;
  std::vector<Ring> out = rings;
  if (count == 0 || count >= static_cast<int>(out.size())) return out;
  out.resize(static_cast<std::size_t>(count));
  double total = 0;
  for (const Ring& ring : out) total += ring.share;
  for (Ring& ring : out) ring.share /= total;
  return out;
}

GroupNetwork examine_network(SimEngine& engine, const std::vector<int>& hosts, const std::vector<int>& node_of) {
  GroupNetwork network;
  network.star = is_star(engine, hosts);
  network.uniform = network.star;

  std::unordered_map<int, int> ring_flows;
  const std::size_t ranks = hosts.size();
  const double first_latency = engine.route(hosts[0], hosts[1]).latency;
  const double first_bandwidth = engine.route(hosts[0], hosts[1]).bandwidth;
  for (std::size_t r = 0; r < ranks; ++r) {
    const Route& route = engine.route(hosts[r], hosts[(r + 1) % ranks]);
    network.alpha = std::max(network.alpha, engine.collective_latency(route));
    network.uniform = network.uniform && nearly_equal(route.latency, first_latency);
    for (const int link : route.bottlenecks()) {
      const int flows = engine.link_sharing(link) == LinkSharing::kShared ? ++ring_flows[link] : 1;
      network.beta = std::max(network.beta, flows / engine.link_bandwidth(link));
      network.uniform = network.uniform && nearly_equal(engine.link_bandwidth(link), first_bandwidth);
    }
  }
  if (network.star) return network;
  const std::vector<std::vector<int>> nodes = ranks_on_nodes(node_of);
  network.one_node = nodes.size() == 1;
  search_rings(engine, hosts, nodes, network);
  return network;
}

}  // namespace epocast
