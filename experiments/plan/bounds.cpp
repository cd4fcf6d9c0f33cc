#include "experiments/plan/bounds.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "experiments/costs/scenario_costs.hpp"
#include "experiments/learning/settings.hpp"
#include "experiments/memory_advice.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/cycle_bound.hpp"

namespace epocast {
namespace {

/// The graph with one rank for each group, if that loses nothing of what computations take.
bool ranks_are_alike(const CyclicTaskGraph& graph) {
  for (const Queue& queue : graph.queues())
    if (std::ranges::any_of(queue.slowdown, [&](double s) { return s != queue.slowdown.front(); })) return false;
  return std::ranges::all_of(graph.tasks(), [](const Task& task) {
    const auto* compute = std::get_if<Compute>(&task.work);
    return compute == nullptr || compute->duration.is_same();
  });
}

double duration_of(const CompiledGraph& compiled, Instance instance) {
  const Task& task = compiled.task(instance.task);
  const auto* compute = std::get_if<Compute>(&task.work);
  if (compute == nullptr) return 0;
  double slowdown = 1;
  DeviceId device = compiled.device(instance);
  if (task.queue != QueueId::none) {
    const Queue& queue = compiled.graph->queue(task.queue);
    const std::vector<DeviceId>& devices = compiled.graph->group(queue.group).devices;
    const std::size_t rank = devices.size() == 1 ? 0 : compiled.first_rank(instance);
    device = devices[rank];
    if (rank < queue.slowdown.size()) slowdown = queue.slowdown[rank];
  }
  return slowdown * compute->duration.on(device).value;
}

}  // namespace

double computing_bound(const CyclicTaskGraph& graph) {
  const CompiledGraph compiled = compile(graph, ranks_are_alike(graph));
  std::map<std::int32_t, double> by_slot;
  double longest = 0;
  for (std::uint32_t t = 0; t < compiled.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < compiled.tasks[t].width; ++r) {
      if (compiled.tasks[t].first_slot < 0) continue;
      const double duration = duration_of(compiled, {t, r});
      compiled.for_each_slot({t, r}, [&](std::uint32_t slot) {
        double& sum = by_slot[static_cast<std::int32_t>(slot)];
        sum += duration;
        longest = std::max(longest, sum);
      });
    }
  const CycleBound cycle =
      maximum_cycle_ratio(compiled, [&](Instance instance) { return duration_of(compiled, instance); }, {});
  return std::max(longest, cycle.seconds);
}

CheapBounds cheap_bounds(const ScenarioSetup& setup) {
  constexpr double kOfNoise = 0.95;
  CheapBounds out;
  std::vector<PhaseRun> runs;
  for (const PhaseSettings& phase : setup.phases) {
    PhaseRun run;
    run.step = setup.compile(phase);
    out.excess = std::max(out.excess, memory_excess(run.step, setup.cluster).value);
    const Irregularity& irregular = setup.irregularity;
    const bool faster = std::ranges::any_of(irregular.slowdown, [](double s) { return s < 1; });
    const bool quorum = std::ranges::any_of(run.step.graph.tasks(), [](const Task& task) { return task.quorum > 0; });
    const double sure = faster || quorum || setup.shards != Shards::fixed ? 0 : irregular.noise.any() ? kOfNoise : 1;
    run.batch = phase.global_batch;
    run.iterations = phase.iterations;
    run.result.iteration = sure * computing_bound(run.step.graph);
    // The last iterations may overlap with those before them: a cycle over several needs them all to begin.
    const double graph_iterations = static_cast<double>(phase.iterations / run.step.steps);
    run.result.total = run.result.iteration * std::max(0.0, graph_iterations - 8);
    out.least.total_s += run.result.total;
    runs.push_back(std::move(run));
  }
  if (setup.learning && setup.learning->given) {
    const PhaseSettings& phase = setup.phases.front();
    out.least.time_to_target_s = out.least.total_s / static_cast<double>(phase.epochs) *
                                 setup.learning->given->epochs_with(phase.global_batch, 0);
  }
  out.fits = !(out.excess > 0);
  if (out.least.total_s > 0) add_running_costs(setup, runs, out.least);
  return out;
}

}  // namespace epocast
