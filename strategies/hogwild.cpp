#include "strategies/hogwild.hpp"

#include <fmt/format.h>

#include "strategies/layer_passes.hpp"

namespace epocast {

EntryInfo Hogwild::info() {
  return {"hogwild",
          "workers of one node update parameters in shared memory, without locks",
          {{"memory_bandwidth", "bytes/s", "> 0", "sum over the workers", "of the memory that holds the parameters"}}};
}

Hogwild::Hogwild(const ConfigNode& options) : options_(options) {
  if (options.has("memory_bandwidth")) bandwidth_ = options.at("memory_bandwidth").as_bytes_per_second(Range{1, 1e18});
}

BytesPerSecond Hogwild::bandwidth(const StrategyContext& context) const {
  BytesPerSecond sum;
  const auto device = [&](DeviceId id) -> const Device& {
    return context.cluster.devices[static_cast<std::size_t>(id)];
  };
  const Device& first = device(context.workers.front());
  for (const DeviceId worker : context.workers) {
    if (device(worker).node != first.node)
      throw options_.error(
          fmt::format("hogwild needs shared memory, but '{}' and '{}' are on different nodes; use workers of one node, "
                      "or parameter_server",
                      first.name, device(worker).name));
    sum += device(worker).memory_bandwidth;
  }
  return bandwidth_.value_or(sum);
}

TrainingStep Hogwild::compile(const StrategyContext& context) const {
  const WorkloadTrace trace = context.trace(context.worker_batch());
  const BytesPerSecond rate = bandwidth(context);
  TrainingStep step;
  CyclicTaskGraph& graph = step.graph;
  const GroupId workers = graph.add_group("workers", context.workers);
  const GroupId node = graph.add_group("shared memory", {context.workers.front()});
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  const QueueId memory = graph.add_queue("shared memory", node, QueueRole::server, Discipline::fifo);
  const StoreId store = graph.add_store("parameters");

  const LayerPass forward = add_forward(graph, compute, trace);
  const LayerPass backward = add_backward(graph, compute, trace);
  const Bytes moved = trace.parameter_bytes() * optimizer_accesses(context.optimizer);
  const TaskId update = graph.compute_for(workers, memory, moved / rate, {"update", ""});
  graph.after(backward.tasks.back(), update);
  graph.after(update, forward.tasks.front(), 1);  // the thread that computes also writes
  graph.set_version_effect(forward.tasks.front(), {store, VersionEffect::read_at_start});
  graph.set_version_effect(update, {store, VersionEffect::write_at_end});

  // Parameters and the optimizer's state are there once; each worker has its gradient and activations.
  MemoryUse use = replica_memory(trace, context.optimizer);
  const double share = 1.0 / static_cast<double>(context.workers.size());
  use.parameters *= share;
  use.optimizer_state *= share;
  step.memory.push_back({"worker, with its share of the common parameters", context.workers, use});
  return step;
}

}  // namespace epocast
