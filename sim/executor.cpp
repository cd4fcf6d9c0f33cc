#include "sim/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
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

constexpr const char* kSymmetricAlgorithms =
    "collectives take the fastest algorithm in which all ranks do the same, not the fastest of all: rank by rank this "
    "step would take long to simulate; name algorithms to have others";

bool chooses_algorithms(const CyclicTaskGraph& graph) {
  return std::ranges::any_of(graph.tasks(), [](const Task& task) {
    const auto* collective = std::get_if<Collective>(&task.work);
    return collective != nullptr && !collective->measured && is_choice(collective->algorithm);
  });
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
  const NetworkPlan fastest(graph, cluster, engine);
  std::optional<NetworkPlan> symmetric;
  if (may_fold && !fastest.ranks_interchangeable() && chooses_algorithms(graph) &&
      executions_of(graph, false) > kManyExecutions)
    symmetric.emplace(graph, cluster, engine, AlgorithmChoice::Among::symmetric);
  const bool is_symmetric = symmetric && symmetric->ranks_interchangeable();
  const NetworkPlan& network = is_symmetric ? *symmetric : fastest;
  restart_engine();  // or how often the plan ran a collective to predict it would decide how dates are rounded
  const bool folded = options.fold && may_fold && network.ranks_interchangeable();
  check_size(graph, folded, options.most_executions);
  ExecutionResult result = GraphRun(graph, cluster, engine, network, options, folded).run();
  if (is_symmetric) result.remarks.emplace_back(kSymmetricAlgorithms);
  if (options.only_pace && result.period) return result;
  result.doubts = doubts_about(result, network.overlooks_traffic());
  result.exact = result.exact && result.doubts.empty();
  return result;
}

}  // namespace epocast
