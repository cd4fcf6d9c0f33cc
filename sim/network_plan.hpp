#pragma once
// Everything about a graph's communication that is known before it runs: hosts, collective plans, idle durations, and
// whether its ranks are interchangeable.

#include <boost/functional/hash.hpp>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/collectives/plan.hpp"
#include "sim/error.hpp"
#include "sim/flow_symmetry.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/task_graph.hpp"
#include "sim/team_networks.hpp"

namespace epocast {

/// A collective is to run on more rings than its network has.
class RingCountError : public SimulationError {
 public:
  using SimulationError::SimulationError;
};

/// What is done to make ranks interchangeable.
enum class Likeness {
  as_they_are,
  by_algorithms,  ///< collectives that leave the choice open take algorithms in which all ranks do the same
  in_lock_step    ///< ranks that the network treats differently wait in each operation for the slowest of all
};

class NetworkPlan {
 public:
  /// `links_change`: links carry less than they should for a while, which formulas do not notice, just as they do not
  /// notice other traffic. Throws RingCountError, and SimulationError if the cluster's devices are not hosts of the
  /// engine's platform.
  NetworkPlan(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine, bool links_change = false);

  /// Plans anew; whether ranks are interchangeable now. Before, they are as they are.
  bool plan_with(Likeness likeness);

  /// Hosts of a group's devices, in rank order.
  const std::vector<int>& hosts(GroupId group) const { return hosts_[CyclicTaskGraph::index(group)]; }
  const std::vector<int>& device_hosts() const { return host_of_; }
  /// Pairs of different hosts between which flows may run, each once; none if collectives' flows are among them.
  std::vector<std::pair<int, int>> flows() const;
  int host(DeviceId device) const { return host_of_[static_cast<std::size_t>(device)]; }
  /// Of a team. REQUIRES: the task is a collective.
  const CollectivePlan& collective(std::uint32_t task, std::uint32_t team) const {
    return plans_[collectives_[task]->plans[team]];
  }
  /// Hosts of a team, in order of place. REQUIRES: the task is a collective.
  const std::vector<int>& team_hosts(std::uint32_t task, std::uint32_t team) const {
    return collectives_[task]->teams->all[team]->hosts;
  }
  /// Whether collectives that are not simulated may meet other traffic on their links, which neither then notices.
  bool overlooks_traffic() const { return overlooks_traffic_; }
  /// By task: the algorithm that a collective takes in its first team; none for other tasks, and where its time was
  /// measured.
  std::vector<std::optional<CollectiveAlgorithm>> algorithms() const;

  /// The plan of another collective over a team of a task that is one.
  CollectivePlan plan_like(std::uint32_t task, std::uint32_t team, const Collective& other) const;

  /// Source and target host of one rank's message; in lock step, of the one with the longest way. REQUIRES: the task is
  /// a transfer.
  std::pair<int, int> ends(const Transfer& transfer, std::uint32_t rank) const;

  /// From the start of a message to its first byte [s].
  double delay(const Transfer& transfer, int from, int to) const;

  /// How long rank `rank` of a transfer or collective takes on an idle network [s]; 0 for computations.
  double idle_time(std::uint32_t task, std::uint32_t rank) const;

  /// Whether every group may be represented by its rank 0: equal devices, and no communication that treats ranks or
  /// teams differently. REQUIRES: no noise and no slow-downs.
  bool ranks_interchangeable() const { return interchangeable_; }
  /// The flows of a folded run. REQUIRES: ranks_interchangeable().
  const FlowSymmetry& symmetry() const { return *symmetry_; }
  /// Which of its sets a transfer starts.
  std::uint32_t transfer_set(std::uint32_t task) const { return transfer_sets_[task]; }

 private:
  /// What all collective tasks have that are equal and of the same teams. Teams that are alike share a plan.
  struct TeamPlans {
    const Teams* teams = nullptr;
    std::vector<std::uint32_t> plans = {};  ///< by team: index into plans_
    bool alike = true;                      ///< whether all teams do the same
  };

  bool same_node(int host, int other) const { return node_of_.at(host) == node_of_.at(other); }
  void plan(std::uint32_t task);
  std::uint32_t plan_of_team(std::uint32_t task, std::uint32_t team);
  bool ranks_are_alike() const;
  bool collectives_in_step() const;
  bool teams_in_step(std::uint32_t task) const;
  bool find_interchangeable();
  std::uint32_t add_set(const Transfer& transfer);
  bool add_sets(std::uint32_t task);
  bool name_set(std::uint32_t task, const CollectivePlan& plan, FlowStep& step) const;

  const CyclicTaskGraph& graph_;
  const Cluster& cluster_;
  SimEngine& engine_;
  std::vector<int> host_of_;
  std::map<int, std::string> node_of_;  ///< by host
  std::vector<std::vector<int>> hosts_;
  Likeness likeness_ = Likeness::as_they_are;
  bool may_contend_;
  TeamNetworks networks_;
  /// What decides over a collective's plans.
  using PlanKey =
      std::tuple<const Teams*, CollectiveOp, CollectiveAlgorithm, CollectiveLevel, double, double, double, int>;
  std::unordered_map<PlanKey, TeamPlans, boost::hash<PlanKey>> team_plans_;
  std::vector<CollectivePlan> plans_;
  std::vector<const TeamPlans*> collectives_;  ///< by task; null for others
  std::optional<FlowSymmetry> symmetry_;
  std::optional<bool> ranks_are_alike_;  ///< whatever the likeness
  /// By teams and permutation: its set, where somebody waits for it and where it is only counted.
  using PermutationKey = std::tuple<const Teams*, bool, Permutation::Kind, int, int>;
  std::map<PermutationKey, std::uint32_t> permutation_sets_;
  std::unordered_map<std::pair<GroupId, GroupId>, std::uint32_t, boost::hash<std::pair<GroupId, GroupId>>> pair_sets_;
  std::map<std::pair<GroupId, GroupId>, std::uint32_t> farthest_;  ///< in lock step: the rank with the longest way
  std::vector<std::uint32_t> transfer_sets_;                       ///< by task
  std::size_t flows_of_sets_ = 0;
  bool interchangeable_ = false;
  bool overlooks_traffic_ = false;
};

}  // namespace epocast
