#include "sim/team_networks.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace epocast {
namespace {

/// Teams that have been examined.
class KnownTeams {
 public:
  std::shared_ptr<Team> get(std::vector<int> hosts, std::vector<int> nodes, SimEngine& engine) {
    const Key key{engine.handshake(), engine.window(), hosts, nodes};
    if (const auto known = teams_.find(key); known != teams_.end()) return known->second;
    auto team = std::make_shared<Team>(std::move(hosts), std::move(nodes), engine);
    share_choice(team, engine);
    ranks_ += team->hosts.size();
    if (ranks_ > kMostRanks) {  // a sweep over many clusters' worth of workers; those in use live on
      teams_.clear();
      deciders_.clear();
      ranks_ = team->hosts.size();
    }
    return teams_[key] = team;
  }

 private:
  void share_choice(const std::shared_ptr<Team>& team, SimEngine& engine) {
    constexpr std::size_t kMostToCompare = 32;  // of more, comparing all pairs takes as long as choosing
    if (team->network.uniform || team->hosts.size() > kMostToCompare) return;
    const std::shared_ptr<Team>& decider =
        deciders_.try_emplace({engine.handshake(), engine.window(), team->routes(engine), team->nodes}, team)
            .first->second;
    if (decider != team) team->choice = {decider, decider->choice.get()};
  }

  using Key = std::tuple<double, double, std::vector<int>, std::vector<int>>;  ///< handshake, window, hosts, nodes
  static constexpr std::size_t kMostRanks = 1 << 20;                           ///< that are remembered
  std::map<Key, std::shared_ptr<Team>> teams_;
  /// The first teams of their kind, which choose for the others.
  std::map<std::tuple<double, double, Team::Routes, std::vector<int>>, std::shared_ptr<Team>> deciders_;
  std::size_t ranks_ = 0;
};

}  // namespace

Team::Team(std::vector<int> its_hosts, std::vector<int> its_nodes, SimEngine& engine)
    : hosts(std::move(its_hosts)),
      nodes(std::move(its_nodes)),
      network(examine_network(engine, hosts, nodes)),
      choice(std::make_shared<AlgorithmChoice>(hosts, nodes, network, engine)) {}

Team::Routes Team::routes(SimEngine& engine) const {
  // Links are called by when they are first met.
  std::unordered_map<int, std::uint64_t> name;
  Routes out;
  for (const int from : hosts)
    for (const int to : hosts) {
      if (from == to) continue;
      const Route& route = engine.route(from, to);
      out.push_back(std::bit_cast<std::uint64_t>(route.latency));
      out.push_back(route.bottlenecks().size());
      for (const int link : route.bottlenecks()) {
        const auto known = name.try_emplace(link, name.size());
        out.push_back(known.first->second);
        if (!known.second) continue;
        out.push_back(std::bit_cast<std::uint64_t>(engine.link_bandwidth(link)));
        out.push_back(static_cast<std::uint64_t>(engine.link_sharing(link)));
      }
    }
  return out;
}

bool Team::is_like(const Team& other) const {
  return network.uniform && other.network.uniform && network.alpha == other.network.alpha &&
         network.beta == other.network.beta && nodes == other.nodes;
}

std::shared_ptr<Team> TeamNetworks::examine(const Group& group, Axis axis, std::uint32_t team) const {
  std::vector<int> hosts, nodes;
  std::map<std::string, int> number;
  axis.for_each_rank(team, [&](std::uint32_t rank) {
    const auto device = static_cast<std::size_t>(group.devices[rank]);
    hosts.push_back(host_of_[device]);
    const auto known = number.try_emplace(cluster_.devices[device].node, static_cast<int>(number.size()));
    nodes.push_back(known.first->second);
  });
  return engine_.kept<KnownTeams>().get(std::move(hosts), std::move(nodes), engine_);
}

const Teams& TeamNetworks::of(GroupId id, Axis axis) {
  const auto [place, is_new] = teams_.try_emplace({id, axis.stride, axis.extent});
  Teams& teams = place->second;
  if (!is_new) return teams;
  const Group& group = graph_.group(id);
  std::vector<std::uint32_t> kinds;
  for (std::uint32_t team = 0; team < axis.teams(static_cast<std::uint32_t>(group.devices.size())); ++team) {
    const Team& here = *teams.all.emplace_back(examine(group, axis, team));
    const auto alike = std::ranges::find_if(kinds, [&](std::uint32_t kind) { return here.is_like(*teams.all[kind]); });
    teams.kind.push_back(alike == kinds.end() ? team : *alike);
    if (teams.kind.back() == team) kinds.push_back(team);
  }
  return teams;
}

}  // namespace epocast
