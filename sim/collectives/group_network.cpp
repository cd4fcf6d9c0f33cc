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
/// and no link serves two ranks. Two targets for each source and two sources for each target tell, and neighbours on a
/// node, which may have links that lead nowhere else. `nodes`: the ranks of each node.
bool is_star(SimEngine& engine, const std::vector<int>& hosts, const std::vector<std::vector<int>>& nodes) {
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
  for (const std::vector<int>& node : nodes)
    for (std::size_t i = 1; i < node.size(); ++i) {
      const auto from = static_cast<std::size_t>(node[i - 1]), to = static_cast<std::size_t>(node[i]);
      const std::vector<int>& links = engine.route(hosts[from], hosts[to]).bottlenecks();
      if (links.size() != 2 || links[0] != up[from] || links[1] != down[to]) return false;
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
/// of the rings at once. Rings are orders of all ranks, each node's among themselves.
double rings_beta(SimEngine& engine, const std::vector<int>& hosts, const std::vector<std::vector<int>>& nodes,
                  const std::vector<Ring>& rings) {
  std::map<std::pair<int, int>, double> parts;  // by source and target host
  for (const std::vector<int>& node : nodes)
    for (const Ring& ring : rings)
      for (std::size_t i = 0; i < node.size(); ++i) {
        const auto from = static_cast<std::size_t>(ring.order[static_cast<std::size_t>(node[i])]);
        const auto to = static_cast<std::size_t>(ring.order[static_cast<std::size_t>(node[(i + 1) % node.size()])]);
        if (from != to) parts[{hosts[from], hosts[to]}] += ring.share;
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

std::vector<int> rank_order(std::size_t ranks) {
  std::vector<int> order(ranks);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// The best rings of a node's local ranks; one in rank order where no search is worth while.
std::vector<Ring> rings_in_node(SimEngine& engine, const std::vector<int>& hosts, const std::vector<int>& node) {
  const std::vector<Ring> one{{rank_order(node.size())}};
  if (node.size() < 3 || node.size() > kMaxRingSearch) return one;
  std::vector<int> own;
  for (const int rank : node) own.push_back(hosts[static_cast<std::size_t>(rank)]);
  if (is_star(engine, own, {rank_order(node.size())})) return one;  // which fills the links of its ranks
  const PairNetwork network = pair_network(engine, own);
  return network.ranks == 0 ? one : find_rings(network);
}

/// The rings of each node's local ranks as orders of all ranks. Nodes of one size have those of the first of them.
/// Where nodes differ in how many they have, those with fewer repeat theirs, and all shares are equal.
std::vector<Ring> find_rings_on_all(SimEngine& engine, const std::vector<int>& hosts,
                                    const std::vector<std::vector<int>>& nodes) {
  std::map<std::size_t, std::vector<Ring>> by_size;
  std::size_t most = 0;
  for (const std::vector<int>& node : nodes) {
    const auto [place, is_new] = by_size.try_emplace(node.size());
    if (is_new) place->second = rings_in_node(engine, hosts, node);
    most = std::max(most, place->second.size());
  }
  std::vector<Ring> out;
  for (std::size_t r = 0; r < most; ++r) {
    const double share = by_size.size() == 1 ? by_size.begin()->second[r].share : 1.0 / static_cast<double>(most);
    Ring& ring = out.emplace_back(Ring{rank_order(hosts.size()), share});
    for (const std::vector<int>& node : nodes) {
      const std::vector<Ring>& own = by_size.at(node.size());
      const std::vector<int>& local = own[r % own.size()].order;
      for (std::size_t i = 0; i < node.size(); ++i)
        ring.order[static_cast<std::size_t>(node[i])] = node[static_cast<std::size_t>(local[i])];
    }
  }
  return out;
}

void search_rings(SimEngine& engine, const std::vector<int>& hosts, const std::vector<std::vector<int>>& nodes,
                  GroupNetwork& out) {
  std::vector<Ring> found = find_rings_on_all(engine, hosts, nodes);
  const double known = rings_beta(engine, hosts, nodes, {{rank_order(hosts.size()), 1}});
  const auto raises = [known](double beta) { return beta < known * (1 - 1e-9); };
  double best = known * (1 - 1e-9);
  for (const Ring& ring : found) {
    const double beta = rings_beta(engine, hosts, nodes, {{ring.order, 1}});
    if (beta >= best) continue;
    best = beta;
    out.best_ring = {{ring.order, 1}};
  }
  if (raises(rings_beta(engine, hosts, nodes, found))) out.rings = std::move(found);
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
  const std::vector<std::vector<int>> nodes = ranks_on_nodes(node_of);
  network.star = is_star(engine, hosts, nodes);
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
  network.one_node = nodes.size() == 1;
  search_rings(engine, hosts, nodes, network);
  return network;
}

}  // namespace epocast
