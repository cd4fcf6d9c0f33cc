#include "strategies/step/single_stage.hpp"

#include "strategies/step/step_graph.hpp"

namespace epocast {

TrainingStep single_stage_step(const StrategyContext& context, int micro_batches,
                               const Synchronisation& synchronisation) {
  const WorkloadTrace trace = context.micro_batch_trace(micro_batches)(context.worker_batch() / micro_batches);
  const auto workers = static_cast<std::uint32_t>(context.workers.size());
  StepPlan plan;
  plan.traces = {&trace};
  plan.chunks = make_chunks(plan.traces, {0, trace.layers.size()}, false);
  plan.ranks = {{.devices = context.workers, .replicas = {.stride = 1, .extent = workers}}};
  plan.micro_batches = micro_batches;
  plan.by_layer = true;
  TrainingStep step;
  step.steps = synchronisation.round(static_cast<int>(workers)).steps;
  step.memory = {{"worker", context.workers, replica_memory(trace, context.optimizer)}};
  step.graph = step_graph(plan, context, synchronisation, step.memory);
  return step;
}

}  // namespace epocast
