#include "sim/network_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "sim/service_symmetry.hpp"

namespace epocast {
namespace {

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

NetworkPlan::NetworkPlan(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine, bool links_change)
    : graph_(graph),
      cluster_(cluster),
      engine_(engine),
      may_contend_(links_change || collectives_may_contend(graph)),
      networks_(graph, cluster, host_of_, engine) {
  for (const Device& device : cluster.devices) {
    host_of_.push_back(engine.find_host(device.name));
    if (host_of_.back() < 0)
      throw SimulationError(fmt::format("device '{}' is not a host of the loaded platform", device.name));
    node_of_.emplace(host_of_.back(), device.node);
  }
  for (const Group& group : graph.groups()) {
    auto& hosts = hosts_.emplace_back();
    for (const DeviceId device : group.devices) hosts.push_back(host(device));
  }
  plan_with(Likeness::as_they_are);
}

bool NetworkPlan::plan_with(Likeness likeness) {
  likeness_ = likeness;
  team_plans_.clear();
  plans_.clear();
  collectives_.assign(graph_.tasks().size(), nullptr);
  symmetry_.emplace(engine_,
                    likeness == Likeness::in_lock_step ? FlowSymmetry::Pace::slowest : FlowSymmetry::Pace::own);
  permutation_sets_.clear();
  pair_sets_.clear();
  farthest_.clear();
  transfer_sets_.assign(graph_.tasks().size(), 0);
  flows_of_sets_ = 0;
  interchangeable_ = overlooks_traffic_ = false;
  for (std::uint32_t t = 0; t < graph_.tasks().size(); ++t)
    if (std::holds_alternative<Collective>(graph_.tasks()[t].work)) plan(t);
  interchangeable_ = find_interchangeable();
  return interchangeable_;
}

/// One plan for each kind of team.
void NetworkPlan::plan(std::uint32_t task) {
  const auto& here = std::get<Collective>(graph_.tasks()[task].work);
  const Teams& teams = networks_.of(here.group, graph_.tasks()[task].axis);
  constexpr double kUnmeasured = -1;
  const double measured = here.measured ? here.measured->value : kUnmeasured;
  const auto [known, is_new] = team_plans_.try_emplace(
      {&teams, here.op, here.algorithm, here.level, here.bytes.value, here.gamma, measured, here.rings},
      TeamPlans{.teams = &teams});
  TeamPlans& own = known->second;
  collectives_[task] = &own;
  if (!is_new) return;
  own.plans.reserve(teams.all.size());
  for (std::uint32_t team = 0; team < teams.all.size(); ++team) {
    const std::uint32_t kind = teams.kind[team];
    own.plans.push_back(kind < team ? own.plans[kind] : plan_of_team(task, team));
    own.alike = own.alike && (kind < team || alike(plans_[own.plans[team]], plans_[own.plans.front()]));
  }
  if (own.alike || likeness_ != Likeness::in_lock_step) return;
  const std::uint32_t slowest =
      *std::ranges::max_element(own.plans, {}, [&](std::uint32_t plan) { return plans_[plan].idle_time; });
  own.plans.assign(own.plans.size(), slowest);
  own.alike = true;
}

std::uint32_t NetworkPlan::plan_of_team(std::uint32_t task, std::uint32_t team) {
  Collective here = std::get<Collective>(graph_.tasks()[task].work);
  if (team > 0) graph_.tune(here, graph_.tasks()[task].axis, team);  // the first team's is in the graph
  const CollectivePlan& plan = plans_.emplace_back(plan_like(task, team, here));
  overlooks_traffic_ |= may_contend_ && plan.level == CollectiveLevel::closed_form && !plan.measured;
  return static_cast<std::uint32_t>(plans_.size() - 1);
}

CollectivePlan NetworkPlan::plan_like(std::uint32_t task, std::uint32_t team, const Collective& other) const {
  const Teams& teams = *collectives_[task]->teams;
  Team& kind = *teams.all[teams.kind[team]];
  Collective taken = other;
  using Among = AlgorithmChoice::Among;
  const Among among = likeness_ == Likeness::as_they_are     ? (engine_.is_running() ? Among::timed : Among::all)
                      : likeness_ == Likeness::by_algorithms ? Among::symmetric
                                                             : Among::in_step;
  taken.algorithm = kind.choice->choose(other, among);
  if (other.algorithm == CollectiveAlgorithm::mpi) taken.rings = 1;
  if (const int most = most_rings(taken, kind.network);
      taken.rings > most && !taken.measured && has_rings(taken.algorithm, taken.op))
    throw RingCountError(fmt::format("{} rings are more than carry anything over the links of {} ranks: at most {}",
                                     taken.rings, kind.hosts.size(), most));
  CollectivePlan plan = plan_collective(taken, kind.hosts, kind.nodes, kind.network, may_contend_, engine_);
  if (interchangeable_)  // what runs as one with others, while a folded run goes on
    for (FlowStep& step : plan.steps) name_set(task, plan, step);
  return plan;
}

std::vector<std::optional<CollectiveAlgorithm>> NetworkPlan::algorithms() const {
  std::vector<std::optional<CollectiveAlgorithm>> out(collectives_.size());
  for (std::uint32_t t = 0; t < collectives_.size(); ++t)
    if (collectives_[t] != nullptr && !collective(t, 0).measured) out[t] = collective(t, 0).algorithm;
  return out;
}

std::pair<int, int> NetworkPlan::ends(const Transfer& transfer, std::uint32_t rank) const {
  const auto& from = hosts(transfer.from);
  const auto& to = hosts(transfer.to);
  if (const auto known = farthest_.find({transfer.from, transfer.to}); known != farthest_.end()) rank = known->second;
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
    return delay(*transfer, from, to) + transfer->bytes.value / engine_.route(from, to).bandwidth;
  }
  return 0;
}

double NetworkPlan::delay(const Transfer& transfer, int from, int to) const {
  const Route& route = engine_.route(from, to);
  const MeasuredMessage& measured = transfer.measured;
  if (!measured.within_node && !measured.across_nodes) return route.latency;
  const std::optional<Seconds>& alone = same_node(from, to) ? measured.within_node : measured.across_nodes;
  return alone ? std::max(0.0, alone->value - transfer.bytes.value / route.bandwidth) : route.latency;
}

/// Whether, as long as flows of one task have one rate and teams are in step, all ranks of a group do the same at the
/// same time.
bool NetworkPlan::ranks_are_alike() const {
  bool wide = false;
  for (const Group& group : graph_.groups()) {
    wide |= group.devices.size() > 1;
    const Device& first = cluster_.devices[CyclicTaskGraph::index(group.devices.front())];
    for (const DeviceId device : group.devices)
      if (!same_kind(cluster_.devices[CyclicTaskGraph::index(device)], first)) return false;
  }
  if (!wide || !ranks_are_served_alike(graph_)) return false;  // nothing to gain; or not the same for all
  for (const Queue& queue : graph_.queues())
    if (std::adjacent_find(queue.slowdown.begin(), queue.slowdown.end(), std::not_equal_to<>()) != queue.slowdown.end())
      return false;
  for (std::uint32_t t = 0; t < graph_.tasks().size(); ++t) {
    const Task& task = graph_.tasks()[t];
    if (task.quorum > 0) return false;  // the order of arrival matters
    const std::size_t ranks = graph_.group(task.ranks).devices.size();
    // A queue or a parameter store that ranks share serves them in an order.
    if (ranks > 1 && task.queue != QueueId::none && graph_.group(graph_.queue(task.queue).group).devices.size() == 1)
      return false;
    if (ranks > 1 && task.version.store != StoreId::none &&
        !graph_.stores()[CyclicTaskGraph::index(task.version.store)].replicated)
      return false;
    if (const auto* transfer = std::get_if<Transfer>(&task.work);
        transfer != nullptr && hosts(transfer->from).size() != hosts(transfer->to).size())
      return false;
  }
  return true;
}

bool NetworkPlan::collectives_in_step() const {
  for (std::uint32_t t = 0; t < graph_.tasks().size(); ++t)
    if (std::holds_alternative<Collective>(graph_.tasks()[t].work) && !teams_in_step(t)) return false;
  return true;
}

/// Whether all teams of a collective do the same, each in a way that its ranks need not be told apart.
bool NetworkPlan::teams_in_step(std::uint32_t t) const {
  const Task& task = graph_.tasks()[t];
  const TeamPlans& own = *collectives_[t];
  const CollectivePlan& plan = collective(t, 0);
  if (!own.alike) return false;
  if (plan.measured) return true;  // the network has no say in it
  if (plan.level == CollectiveLevel::message) return false;
  const bool fused = task.queue != QueueId::none && graph_.queue(task.queue).fusion_limit.value > 0;
  if (!fused) return true;
  // What runs as one may take another algorithm than each by itself, and other messages.
  const bool same_for_all = std::ranges::all_of(plan.steps, [](const FlowStep& s) { return s.flows.is_uniform(); });
  if (plan.level == CollectiveLevel::closed_form) return own.plans.size() == 1 || same_for_all;
  return same_for_all && !is_choice(std::get<Collective>(task.work).algorithm);
}

bool NetworkPlan::find_interchangeable() {
  if (!ranks_are_alike_) ranks_are_alike_ = ranks_are_alike();
  if (!*ranks_are_alike_ || !collectives_in_step()) return false;
  for (std::uint32_t t = 0; t < graph_.tasks().size(); ++t) {
    const Work& work = graph_.tasks()[t].work;
    if (const auto* transfer = std::get_if<Transfer>(&work)) transfer_sets_[t] = add_set(*transfer);
    if (std::holds_alternative<Collective>(work) && !add_sets(t)) return false;
  }
  return symmetry_->refine();
}

std::uint32_t NetworkPlan::add_set(const Transfer& transfer) {
  const auto known = pair_sets_.find({transfer.from, transfer.to});
  if (known != pair_sets_.end()) return known->second;
  std::vector<SetFlow> flows;
  for (std::size_t r = 0; r < hosts(transfer.from).size(); ++r)
    flows.push_back({.from = hosts(transfer.from)[r],
                     .to = hosts(transfer.to)[r],
                     .within_node = same_node(hosts(transfer.from)[r], hosts(transfer.to)[r])});
  if (likeness_ == Likeness::in_lock_step) {
    const auto way = [&](const SetFlow& flow) {
      return std::pair(!flow.within_node, flow.from == flow.to ? 0 : engine_.route(flow.from, flow.to).latency);
    };
    farthest_[{transfer.from, transfer.to}] =
        static_cast<std::uint32_t>(std::ranges::max_element(flows, {}, way) - flows.begin());
  }
  return pair_sets_[{transfer.from, transfer.to}] = symmetry_->add(std::move(flows), FlowSymmetry::Waits::rank);
}

/// Adds the sets of a collective's steps. Returns false where those are too many flows to look at.
bool NetworkPlan::add_sets(std::uint32_t task) {
  constexpr std::size_t kMostFlows = 1 << 22;
  const Teams& teams = *collectives_[task]->teams;
  CollectivePlan& plan = plans_[collectives_[task]->plans.front()];
  for (FlowStep& step : plan.steps) {
    if (step.set != FlowStep::kNoSet) continue;  // another task has the same plan
    if (name_set(task, plan, step)) continue;
    const bool runs = plan.level == CollectiveLevel::flow;
    std::vector<SetFlow> flows;
    for (std::uint32_t team = 0; team < teams.all.size(); ++team) {
      const std::vector<int>& hosts = teams.all[team]->hosts;
      for_each_message(step.flows, static_cast<int>(hosts.size()), [&](const Message& m) {
        flows.push_back({hosts[m.from], hosts[m.to], step.flows.is_uniform() ? 1 : m.bytes, team});
      });
    }
    flows_of_sets_ += flows.size();
    if (flows_of_sets_ > kMostFlows) return false;
    step.set = symmetry_->add(std::move(flows), runs ? FlowSymmetry::Waits::team : FlowSymmetry::Waits::nobody);
    step.set_bytes = step.flows.is_uniform() ? step.flows.permutation->bytes : 1;
    if (const auto& rule = step.flows.permutation)
      permutation_sets_.emplace(PermutationKey{&teams, runs, rule->kind, rule->operand, rule->per_node}, step.set);
  }
  return true;
}

/// Gives a step that is a permutation the set that it shares with others, if that is known.
bool NetworkPlan::name_set(std::uint32_t task, const CollectivePlan& plan, FlowStep& step) const {
  if (!step.flows.is_uniform()) return false;
  const Permutation& rule = *step.flows.permutation;
  const auto known = permutation_sets_.find(
      {collectives_[task]->teams, plan.level == CollectiveLevel::flow, rule.kind, rule.operand, rule.per_node});
  if (known == permutation_sets_.end()) return false;
  step.set = known->second;
  step.set_bytes = rule.bytes;
  return true;
}

}  // namespace epocast
