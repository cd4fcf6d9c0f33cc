#include "sim/team_networks.hpp"

#include <algorithm>
#include <string>

namespace epocast {

bool Team::is_like(const Team& other) const {
  return network.uniform && other.network.uniform && network.alpha == other.network.alpha &&
         network.beta == other.network.beta && nodes == other.nodes;
}

Team TeamNetworks::examine(const Group& group, Axis axis, std::uint32_t team) const {
  Team out;
  std::map<std::string, int> number;
  axis.for_each_rank(team, [&](std::uint32_t rank) {
    const auto device = static_cast<std::size_t>(group.devices[rank]);
    out.hosts.push_back(host_of_[device]);
    const auto known = number.try_emplace(cluster_.devices[device].node, static_cast<int>(number.size()));
    out.nodes.push_back(known.first->second);
  });
  out.network = examine_network(engine_, out.hosts, out.nodes);
  return out;
}

const Teams& TeamNetworks::of(GroupId id, Axis axis) {
  const auto [place, is_new] = teams_.try_emplace({id, axis.stride, axis.extent});
  Teams& teams = place->second;
  if (!is_new) return teams;
  const Group& group = graph_.group(id);
  std::vector<std::uint32_t> kinds;
  for (std::uint32_t team = 0; team < axis.teams(static_cast<std::uint32_t>(group.devices.size())); ++team) {
    const Team& here = teams.all.emplace_back(examine(group, axis, team));
    const auto alike = std::ranges::find_if(kinds, [&](std::uint32_t kind) { return here.is_like(teams.all[kind]); });
    teams.kind.push_back(alike == kinds.end() ? team : *alike);
    if (teams.kind.back() == team) kinds.push_back(team);
  }
  return teams;
}

}  // namespace epocast
