#include "sim/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/graph_run.hpp"
#include "sim/result_check.hpp"
#include "sim/simgrid/restart.hpp"

namespace epocast {
namespace {

/// Whether each group's devices are slowed down alike.
bool slowed_alike(const CyclicTaskGraph& graph, const std::vector<double>& slowdown) {
  if (slowdown.empty()) return true;
  const auto of = [&](DeviceId device) { return slowdown[CyclicTaskGraph::index(device)]; };
  return std::ranges::all_of(graph.groups(), [&](const Group& group) {
    return std::ranges::all_of(group.devices, [&](DeviceId d) { return of(d) == of(group.devices.front()); });
  });
}

std::size_t executions_of(const CyclicTaskGraph& graph, bool folded) {
  std::size_t executions = 0;
  for (std::size_t t = 0; t < graph.tasks().size(); ++t) executions += folded ? 1 : graph.width_of(TaskId(t));
  return executions;
}

void check_size(const CyclicTaskGraph& graph, bool folded, std::size_t most) {
  const std::size_t executions = executions_of(graph, folded);
  if (executions > most)
    throw SimulationError(fmt::format(
        "a step is {} tasks, which are executed {} times by ranks that do not do the same at the same time; at most {} "
        "are simulated: use fewer workers, micro-batches or layers",
        graph.tasks().size(), executions, most));
}

/// Whether flows of collectives are very many where one stands for those that do the same, since few of them do.
bool few_are_alike(const CyclicTaskGraph& graph, const NetworkPlan& network) {
  constexpr std::size_t kAlikeEnough = 10;  // flows in which a step of a collective happens
  std::size_t flows = 0, steps = 0;
  for (std::uint32_t t = 0; t < graph.tasks().size(); ++t) {
    if (!std::holds_alternative<Collective>(graph.tasks()[t].work)) continue;
    const CollectivePlan& plan = network.collective(t, 0);
    if (plan.level != CollectiveLevel::flow) continue;
    for (const FlowStep& step : plan.steps) flows += network.symmetry().parts(step.set).size();
    steps += plan.steps.size();
  }
  return flows > kManyClassFlows && flows > kAlikeEnough * steps;
}

/// Whether a step is so much that ranks shall stand for each other, or for more of them than they do.
bool takes_long(const CyclicTaskGraph& graph, const NetworkPlan& network) {
  if (network.ranks_interchangeable()) return few_are_alike(graph, network);
  std::size_t flows = 0, of_many_ranks = 0;
  for (std::uint32_t t = 0; t < graph.tasks().size(); ++t) {
    if (!std::holds_alternative<Collective>(graph.tasks()[t].work)) continue;
    const std::size_t ranks = network.team_hosts(t, 0).size();
    const std::size_t own = graph.width_of(TaskId(t)) * ranks * network.collective(t, 0).steps.size();
    flows += own;
    if (ranks > kManyRanks) of_many_ranks += own;
  }
  return executions_of(graph, false) + of_many_ranks > kManyExecutions || flows > kManyFlows;
}

/// What is said of a step whose ranks have been made interchangeable.
const char* remark_on(Likeness likeness) {
  return likeness == Likeness::by_algorithms
             ? "collectives take the fastest algorithm in which all ranks do the same, not the fastest of all: rank by "
               "rank this step would take long to simulate; name algorithms to have others"
             : "ranks sit differently in the network, and are taken to wait in each operation for the slowest of them: "
               "rank by rank this step would take long to simulate (--unfolded does)";
}

bool chooses_algorithms(const CyclicTaskGraph& graph) {
  return std::ranges::any_of(graph.tasks(), [](const Task& task) {
    const auto* collective = std::get_if<Collective>(&task.work);
    return collective != nullptr && !collective->measured && is_choice(collective->algorithm);
  });
}

/// Makes ranks interchangeable that are many, by as little as does. `fold`: they are to stand for each other, in lock
/// step if nothing less does.
Likeness make_alike(NetworkPlan& network, const CyclicTaskGraph& graph, bool fold) {
  if ((network.ranks_interchangeable() && !fold) || !takes_long(graph, network)) return Likeness::as_they_are;
  if (chooses_algorithms(graph) && network.plan_with(Likeness::by_algorithms) && !(fold && takes_long(graph, network)))
    return Likeness::by_algorithms;
  if (fold && network.plan_with(Likeness::in_lock_step)) return Likeness::in_lock_step;
  network.plan_with(Likeness::as_they_are);
  return Likeness::as_they_are;
}

}  // namespace

ExecutionResult execute(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine,
                        const ExecutionOptions& options) {
  graph.validate(cluster);
  if (options.shards == Shards::stealing && !graph.ranks_are_independent())
    throw GraphError("ranks that wait for each other cannot take steps from a common pool");
  engine.set_handshake(options.costs.handshake);
  engine.set_window(options.costs.window);
  const bool undisturbed = !options.noise.any() && options.slow_devices.empty() && options.slow_links.empty() &&
                           slowed_alike(graph, options.slowdown);
  const bool may_fold = undisturbed && options.shards == Shards::fixed &&
                        (!options.costs.slows_computation() || Interference::folds(graph));
  NetworkPlan network(graph, cluster, engine, !options.slow_links.empty());
  const Likeness likeness = may_fold ? make_alike(network, graph, options.fold) : Likeness::as_they_are;
  restart_engine();  // or how often the plan ran a collective to predict it would decide how dates are rounded
  const bool folded = options.fold && may_fold && network.ranks_interchangeable();
  check_size(graph, folded, options.most_executions);
  ExecutionResult result = GraphRun(graph, cluster, engine, network, options, folded).run();
  if (likeness != Likeness::as_they_are) result.remarks.emplace_back(remark_on(likeness));
  if (options.only_pace && result.period) return result;
  result.doubts = doubts_about(result, network.overlooks_traffic());
  result.exact = result.exact && result.doubts.empty() && likeness != Likeness::in_lock_step;
  return result;
}

}  // namespace epocast
