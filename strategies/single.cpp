#include "strategies/single.hpp"

#include "strategies/layer_passes.hpp"

namespace epocast {

EntryInfo Single::info() { return {"single", "one device trains the whole network", {}}; }

TrainingStep Single::compile(const StrategyContext& context) const {
  if (context.workers.size() != 1)
    throw options_.error("strategy 'single' trains on one worker, but the study has " +
                         std::to_string(context.workers.size()) + "; set workers: 1 or choose data_parallel");
  const WorkloadTrace trace = context.trace(context.global_batch);
  TrainingStep step;
  const GroupId workers = step.graph.add_group("worker", context.workers);
  const QueueId compute = step.graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  add_forward(step.graph, compute, trace);
  add_backward(step.graph, compute, trace);
  for (const LayerTrace& layer : trace.layers)
    if (layer.times.update.any()) step.graph.compute(compute, layer.times.update, {"update", layer.name});
  step.memory.push_back({"worker", context.workers, replica_memory(trace, context.optimizer)});
  return step;
}

}  // namespace epocast
