#include "experiments/joining.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/executor.hpp"

namespace epocast {
namespace {

constexpr double kLeast = 0.5;  // bytes: less is rounding

/// What each device holds that training goes on with [B].
std::map<DeviceId, double> holdings(const TrainingStep& step) {
  std::map<DeviceId, double> out;
  for (const DeviceMemory& memory : step.memory)
    for (const DeviceId device : memory.devices) out[device] += memory.use.lasting().value;
  return out;
}

/// What copies the parameters to those that join: what the study names. But a sender and they need not be equally many
/// on each node, as hierarchical wants: then the fastest that they can run.
CollectiveAlgorithm algorithm_for_copies(CollectiveAlgorithm named) {
  if (!supports(named, CollectiveOp::broadcast)) return default_algorithm(CollectiveOp::broadcast);
  return named == CollectiveAlgorithm::hierarchical ? CollectiveAlgorithm::automatic : named;
}

bool reads_from_servers(const CyclicTaskGraph& graph) {
  return std::ranges::any_of(graph.tasks(), [](const Task& task) { return task.label.operation == "pull"; });
}

}  // namespace

Joining joining_of(const ScenarioSetup& setup, SimEngine& engine, const TrainingStep& before, const TrainingStep& step,
                   const PhaseSettings& phase, const ExecutionOptions& how) {
  if (!setup.strategy->needs_model() || reads_from_servers(step.graph)) return {};
  const std::map<DeviceId, double> had = holdings(before);
  std::vector<DeviceId> sources;
  for (const auto& [device, bytes] : had)
    if (bytes > 0) sources.push_back(device);
  if (sources.empty()) return {};
  const auto [holder, whole] = *std::ranges::max_element(had, {}, [](const auto& holding) { return holding.second; });

  CyclicTaskGraph graph;
  std::vector<DeviceId> copies{holder};
  std::map<DeviceId, QueueId> queues;
  std::size_t next = 0;
  for (const auto& [device, bytes] : holdings(step)) {
    const auto found = had.find(device);
    const double missing = bytes - (found == had.end() ? 0 : found->second);
    if (missing < kLeast) continue;
    if (std::abs(missing - whole) < kLeast && device != holder) {
      copies.push_back(device);
      continue;
    }
    DeviceId source = sources[next++ % sources.size()];
    if (source == device) source = sources[next++ % sources.size()];
    if (source == device) continue;  // alone, it has all there is
    const GroupId from = graph.add_group("sender", {source}), to = graph.add_group("joining", {device});
    if (!queues.contains(source))
      queues[source] = graph.add_queue("sender", from, QueueRole::communication, Discipline::fifo);
    graph.transfer(from, queues[source], {from, to, Bytes(missing)}, {"join", "parameters"});
  }
  if (copies.size() > 1) {
    const StrategyContext context = setup.context(phase);
    const CollectiveAlgorithm algorithm = algorithm_for_copies(context.collective.algorithm);
    const GroupId group = graph.add_group("joining", copies);
    graph.collective(graph.add_queue("communication", group, QueueRole::communication, Discipline::fifo),
                     {CollectiveOp::broadcast, algorithm, context.collective.level, group, Bytes(whole), 0},
                     {"join", "parameters"});
  }
  if (graph.tasks().empty()) return {};
  // What was measured of the strategy's collectives need not tell of these copies: then the platform's links do.
  const bool all_known = std::ranges::all_of(setup.measured_collectives, [](const MeasuredCollectives& measured) {
    return measured.was_measured(CollectiveOp::broadcast);
  });
  if (all_known) graph.tune_collectives([&](Collective& work, const Group& group) { setup.tune(work, group); });
  ExecutionOptions once = how;
  once.iterations = 1;
  once.shards = Shards::fixed;  // no samples are read
  const ExecutionResult result = execute(graph, setup.cluster, engine, once);
  return {result.total, result.metrics.bytes};
}

}  // namespace epocast
