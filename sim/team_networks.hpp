#pragma once
// The teams of a group of ranks along an axis, and what each of them sees of the network.

#include <boost/functional/hash.hpp>
#include <cstdint>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/axis.hpp"
#include "sim/cluster.hpp"
#include "sim/collectives/algorithm_choice.hpp"
#include "sim/collectives/group_network.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// Ranks that carry out collectives together, in order of place.
struct Team {
  std::vector<int> hosts;
  std::vector<int> nodes;  ///< consecutive numbers of the nodes that the ranks sit in
  GroupNetwork network;
  std::shared_ptr<AlgorithmChoice> choice;  ///< remembers what it chose; that of the first team whose routes are alike

  Team(std::vector<int> hosts, std::vector<int> nodes, SimEngine& engine);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Whether collectives of this team take as long as the other's whatever the algorithm.
  bool is_like(const Team& other) const;

  /// Equal for teams between whose ranks messages meet the same, pair by pair: rates and latencies of links, and which
  /// of them are the same. As many as there are pairs of ranks.
  using Routes = std::vector<std::uint64_t>;
  Routes routes(SimEngine& engine) const;
};

/// The teams of a group along an axis.
struct Teams {
  std::vector<std::shared_ptr<Team>> all;
  std::vector<std::uint32_t> kind;  ///< by team: the first that is like it
};

/// Examines teams when they are first asked for. The engine keeps what was found for the next graph.
class TeamNetworks {
 public:
  /// `host_of`: by device. All arguments outlive this.
  TeamNetworks(const CyclicTaskGraph& graph, const Cluster& cluster, const std::vector<int>& host_of, SimEngine& engine)
      : graph_(graph), cluster_(cluster), host_of_(host_of), engine_(engine) {}

  /// By team. REQUIRES: teams of at least two. What it refers to stays where it is.
  const Teams& of(GroupId group, Axis axis);

 private:
  std::shared_ptr<Team> examine(const Group& group, Axis axis, std::uint32_t team) const;

  const CyclicTaskGraph& graph_;
  const Cluster& cluster_;
  const std::vector<int>& host_of_;
  SimEngine& engine_;
  using Key = std::tuple<GroupId, std::uint32_t, std::uint32_t>;  ///< group, stride, extent
  std::unordered_map<Key, Teams, boost::hash<Key>> teams_;
};

}  // namespace epocast
