#include "sim/network_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "sim/collectives/algorithm_choice.hpp"
#include "sim/service_symmetry.hpp"

namespace epocast {
namespace {

template <class Id>
constexpr std::size_t idx(Id id) {
  return static_cast<std::size_t>(id);
}

/// Collectives contend unless all communication goes through one queue, one operation at a time: each team its own, on
/// links that others may share.
bool collectives_may_contend(const CyclicTaskGraph& graph) {
  std::set<QueueId> queues;
  for (const Task& task : graph.tasks()) {
    if (std::holds_alternative<Transfer>(task.work)) return true;
    if (!std::holds_alternative<Collective>(task.work)) continue;
    if (graph.width_of(TaskId(&task - graph.tasks().data())) > 1) return true;
    queues.insert(task.queue);
  }
  return queues.size() > 1 || queues.contains(QueueId::none);
}

}  // namespace

NetworkPlan::NetworkPlan(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine)
    : graph_(graph),
      engine_(engine),
      may_contend_(collectives_may_contend(graph)),
      networks_(graph, cluster, host_of_, engine),
      collectives_(graph.tasks().size()) {
  for (const Device& device : cluster.devices) {
    host_of_.push_back(engine.find_host(device.name));
    if (host_of_.back() < 0)
      throw SimulationError(fmt::format("device '{}' is not a host of the loaded platform", device.name));
  }
  for (const Group& group : graph.groups()) {
    auto& hosts = hosts_.emplace_back();
    for (const DeviceId device : group.devices) hosts.push_back(host(device));
  }

  for (std::uint32_t t = 0; t < graph.tasks().size(); ++t)
    if (std::holds_alternative<Collective>(graph.tasks()[t].work)) plan(t);
  interchangeable_ = find_interchangeable(cluster);
}

/// One plan for each kind of team.
void NetworkPlan::plan(std::uint32_t task) {
  const auto& collective = std::get<Collective>(graph_.tasks()[task].work);
  TeamPlans& own = collectives_[task];
  own.teams = &networks_.of(collective.group, graph_.tasks()[task].axis);
  for (std::uint32_t team = 0; team < own.teams->all.size(); ++team) {
    if (const std::uint32_t kind = own.teams->kind[team]; kind < team) {
      own.plans.push_back(own.plans[kind]);
      continue;
    }
    Collective here = collective;
    graph_.tune(here, graph_.tasks()[task].axis, team);
    own.plans.push_back(static_cast<std::uint32_t>(plans_.size()));
    const CollectivePlan& plan = plans_.emplace_back(plan_like(task, team, here));
    overlooks_traffic_ |= may_contend_ && plan.level == CollectiveLevel::closed_form && !plan.measured;
  }
}

AlgorithmChoice& NetworkPlan::choice(const Team& kind) const {
  return choices_.try_emplace(&kind, kind.hosts, kind.nodes, kind.network, may_contend_, engine_).first->second;
}

CollectivePlan NetworkPlan::plan_like(std::uint32_t task, std::uint32_t team, const Collective& other) const {
  const Teams& teams = *collectives_[task].teams;
  const Team& kind = teams.all[teams.kind[team]];
  Collective taken = other;
  taken.algorithm = choice(kind).choose(other);
  if (other.algorithm == CollectiveAlgorithm::mpi) taken.rings = 1;
  if (const int most = most_rings(taken, kind.network);
      taken.rings > most && !taken.measured && has_rings(taken.algorithm, taken.op))
    throw RingCountError(fmt::format("{} rings are more than carry anything over the links of {} ranks: at most {}",
                                     taken.rings, kind.hosts.size(), most));
  return plan_collective(taken, kind.hosts, kind.nodes, kind.network, may_contend_, engine_);
}

std::vector<std::optional<CollectiveAlgorithm>> NetworkPlan::algorithms() const {
  std::vector<std::optional<CollectiveAlgorithm>> out(collectives_.size());
  for (std::uint32_t t = 0; t < collectives_.size(); ++t)
    if (!collectives_[t].plans.empty() && !collective(t, 0).measured) out[t] = collective(t, 0).algorithm;
  return out;
}

std::pair<int, int> NetworkPlan::ends(const Transfer& transfer, std::uint32_t rank) const {
  const auto& from = hosts(transfer.from);
  const auto& to = hosts(transfer.to);
  return {from[from.size() == 1 ? 0 : rank], to[to.size() == 1 ? 0 : rank]};
}

std::vector<std::pair<int, int>> NetworkPlan::flows() const {
  std::set<std::pair<int, int>> pairs;
  for (const Task& task : graph_.tasks()) {
    if (std::holds_alternative<Collective>(task.work)) return {};
    const auto* transfer = std::get_if<Transfer>(&task.work);
    if (transfer == nullptr) continue;
    for (std::uint32_t r = 0; r < graph_.group(task.ranks).devices.size(); ++r)
      if (const auto pair = ends(*transfer, r); pair.first != pair.second) pairs.insert(pair);
  }
  return {pairs.begin(), pairs.end()};
}

double NetworkPlan::idle_time(std::uint32_t task, std::uint32_t rank) const {
  const Work& work = graph_.tasks()[task].work;
  if (std::holds_alternative<Collective>(work)) return collective(task, rank).idle_time;
  if (const auto* transfer = std::get_if<Transfer>(&work)) {
    const auto [from, to] = ends(*transfer, rank);
    if (from == to) return 0;
    const Route& route = engine_.route(from, to);
    return route.latency + transfer->bytes.value / route.bandwidth;
  }
  return 0;
}

/// Whether two collectives run over groups that have devices in common but are not the same. Rank 0 of one then does
/// not see on its links what the other's rank 0 sends.
bool NetworkPlan::collectives_overlap(const Cluster& cluster) const {
  std::vector<const Group*> group_of(cluster.devices.size(), nullptr);
  for (const Task& task : graph_.tasks()) {
    if (!std::holds_alternative<Collective>(task.work)) continue;
    const Group& group = graph_.group(task.ranks);
    const Group* known = group_of[idx(group.devices.front())];
    if (known == &group || (known != nullptr && known->devices == group.devices)) continue;
    for (const DeviceId device : group.devices)
      if (std::exchange(group_of[idx(device)], &group) != nullptr) return true;
  }
  return false;
}

bool NetworkPlan::find_interchangeable(const Cluster& cluster) const {
  bool wide = false;
  for (const Group& group : graph_.groups()) {
    wide |= group.devices.size() > 1;
    const Device& first = cluster.devices[idx(group.devices.front())];
    for (const DeviceId device : group.devices)
      if (!same_kind(cluster.devices[idx(device)], first)) return false;
  }
  if (!wide || collectives_overlap(cluster) || !ranks_are_served_alike(graph_))
    return false;  // nothing to gain; or not the same for all
  for (const Queue& queue : graph_.queues())
    if (std::adjacent_find(queue.slowdown.begin(), queue.slowdown.end(), std::not_equal_to<>()) != queue.slowdown.end())
      return false;
  for (std::size_t t = 0; t < graph_.tasks().size(); ++t) {
    const Task& task = graph_.tasks()[t];
    if (task.quorum > 0) return false;  // the order of arrival matters
    const std::size_t ranks = graph_.group(task.ranks).devices.size();
    // A queue, a link or a parameter store that ranks share serves them in an order.
    if (ranks > 1 && task.queue != QueueId::none && graph_.group(graph_.queue(task.queue).group).devices.size() == 1)
      return false;
    if (std::holds_alternative<Transfer>(task.work)) return false;
    if (task.version.store != StoreId::none && ranks > 1) return false;
    if (std::holds_alternative<Collective>(task.work)) {
      const CollectivePlan& plan = collective(static_cast<std::uint32_t>(t), 0);
      if (task.axis.extent < ranks) return false;
      if (plan.measured) continue;  // the network has no say in it
      if (!collectives_[t].teams->all.front().network.uniform) return false;
      // What runs as one may take another algorithm than each by itself, one that treats ranks differently.
      if (task.queue != QueueId::none && graph_.queue(task.queue).fusion_limit.value > 0 &&
          is_choice(std::get<Collective>(task.work).algorithm) && plan.level != CollectiveLevel::closed_form)
        return false;
      const auto& steps = plan.steps;
      const bool same_for_all =
          std::all_of(steps.begin(), steps.end(), [](const FlowStep& s) { return s.flows.is_uniform(); });
      if (plan.level == CollectiveLevel::message) return false;
      if (plan.level == CollectiveLevel::flow && !same_for_all) return false;
    }
  }
  return true;
}

}  // namespace epocast
