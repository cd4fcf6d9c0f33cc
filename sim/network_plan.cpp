#include "sim/network_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
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

/// Collectives contend unless all communication goes through one queue, one operation at a time.
bool collectives_may_contend(const CyclicTaskGraph& graph) {
  std::set<QueueId> queues;
  for (const Task& task : graph.tasks()) {
    if (std::holds_alternative<Transfer>(task.work)) return true;
    if (std::holds_alternative<Collective>(task.work)) queues.insert(task.queue);
  }
  return queues.size() > 1 || queues.contains(QueueId::none);
}

/// Consecutive numbers for the nodes of a group's devices.
std::vector<int> node_numbers(const Group& group, const Cluster& cluster) {
  std::map<std::string, int> number;
  std::vector<int> out;
  for (const DeviceId device : group.devices)
    out.push_back(number.try_emplace(cluster.devices[idx(device)].node, static_cast<int>(number.size())).first->second);
  return out;
}

}  // namespace

NetworkPlan::NetworkPlan(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine)
    : graph_(graph),
      engine_(engine),
      may_contend_(collectives_may_contend(graph)),
      nodes_(graph.groups().size()),
      networks_(graph.groups().size()),
      choices_(graph.groups().size()),
      plans_(graph.tasks().size()) {
  for (const Device& device : cluster.devices) {
    host_of_.push_back(engine.find_host(device.name));
    if (host_of_.back() < 0)
      throw SimulationError(fmt::format("device '{}' is not a host of the loaded platform", device.name));
  }
  for (const Group& group : graph.groups()) {
    auto& hosts = hosts_.emplace_back();
    for (const DeviceId device : group.devices) hosts.push_back(host(device));
  }

  for (std::size_t t = 0; t < graph.tasks().size(); ++t) {
    const auto* collective = std::get_if<Collective>(&graph.tasks()[t].work);
    if (collective == nullptr) continue;
    const std::size_t g = idx(collective->group);
    if (nodes_[g].empty()) {
      nodes_[g] = node_numbers(graph.groups()[g], cluster);
      networks_[g] = examine_network(engine, hosts_[g], nodes_[g]);
      choices_[g].emplace(hosts_[g], nodes_[g], networks_[g], may_contend_, engine);
    }
    plans_[t] = plan_like(static_cast<std::uint32_t>(t), *collective);
    overlooks_traffic_ |= may_contend_ && plans_[t].level == CollectiveLevel::closed_form && !plans_[t].measured;
  }
  interchangeable_ = find_interchangeable(cluster);
}

CollectivePlan NetworkPlan::plan_like(std::uint32_t task, const Collective& other) const {
  const std::size_t g = idx(graph_.tasks()[task].ranks);
  Collective taken = other;
  taken.algorithm = choices_[g]->choose(other);
  if (other.algorithm == CollectiveAlgorithm::mpi) taken.rings = 1;
  if (const int most = most_rings(taken, networks_[g]);
      taken.rings > most && !taken.measured && has_rings(taken.algorithm, taken.op))
    throw RingCountError(fmt::format("{} rings are more than carry anything over the links of {} ranks: at most {}",
                                     taken.rings, hosts_[g].size(), most));
  return plan_collective(taken, hosts_[g], nodes_[g], networks_[g], may_contend_, engine_);
}

std::vector<std::optional<CollectiveAlgorithm>> NetworkPlan::algorithms() const {
  std::vector<std::optional<CollectiveAlgorithm>> out(plans_.size());
  for (std::size_t t = 0; t < plans_.size(); ++t)
    if (std::holds_alternative<Collective>(graph_.tasks()[t].work) && !plans_[t].measured) out[t] = plans_[t].algorithm;
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
  if (std::holds_alternative<Collective>(work)) return plans_[task].idle_time;
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
      if (plans_[t].measured) continue;  // the network has no say in it
      if (!networks_[idx(task.ranks)].uniform) return false;
      // What runs as one may take another algorithm than each by itself, one that treats ranks differently.
      if (task.queue != QueueId::none && graph_.queue(task.queue).fusion_limit.value > 0 &&
          is_choice(std::get<Collective>(task.work).algorithm) && plans_[t].level != CollectiveLevel::closed_form)
        return false;
      const auto& steps = plans_[t].steps;
      const bool same_for_all =
          std::all_of(steps.begin(), steps.end(), [](const FlowStep& s) { return s.flows.is_uniform(); });
      if (plans_[t].level == CollectiveLevel::message) return false;
      if (plans_[t].level == CollectiveLevel::flow && !same_for_all) return false;
    }
  }
  return true;
}

}  // namespace epocast
