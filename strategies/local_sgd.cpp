#include "strategies/local_sgd.hpp"

#include "strategies/layer_passes.hpp"

namespace epocast {

EntryInfo LocalSgd::info() {
  return {"local_sgd",
          "workers train by themselves for some steps, then average their parameters by all-reduce",
          {{"period", "count", "1 .. 1e6", "8", "steps from one average to the next"},
           {"bucket", "bytes", "> 0", "25 MiB", "size at which a bucket of parameters is closed"},
           {"overlap", "", "true | false", "false", "average while the next round computes; mix it in at its end"}}};
}

LocalSgd::LocalSgd(const ConfigNode& options)
    : period_(options.get("period", std::int64_t{8}, Range{1, 1e6})),
      bucket_(options.get("bucket", Bytes(25.0 * (1 << 20)), Range{1, 1e15})),
      overlap_(options.get("overlap", false)) {}

TrainingStep LocalSgd::compile(const StrategyContext& context) const {
  const WorkloadTrace trace = context.trace(context.worker_batch());
  TrainingStep step;
  step.steps = period_;
  CyclicTaskGraph& graph = step.graph;
  const GroupId workers = graph.add_group("workers", context.workers);
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  const QueueId communication = graph.add_queue("communication", workers, QueueRole::communication, Discipline::fifo);

  // Nobody talks during all steps but the last: one task.
  if (period_ > 1) graph.compute(compute, trace.compute_time() * static_cast<double>(period_ - 1), {"local steps", ""});
  const LayerPass forward = add_forward(graph, compute, trace);
  add_backward(graph, compute, trace);
  std::vector<TaskId> updates(trace.layers.size());
  for (std::size_t l = trace.layers.size(); l-- > 0;)
    if (!trace.layers[l].gradients.empty())
      updates[l] = graph.compute(compute, trace.layers[l].times.update, {"update", trace.layers[l].name});

  const TaskId round_start = period_ > 1 ? TaskId{0} : forward.tasks.front();
  const bool averages = context.workers.size() > 1;  // one worker is the average
  for (const Bucket& bucket :
       make_buckets(trace, {.granularity = Granularity::bucket, .limit = bucket_, .first = bucket_})) {
    if (!averages) break;
    const TaskId reduced = graph.collective(communication,
                                            {.op = CollectiveOp::all_reduce,
                                             .algorithm = context.collective.algorithm,
                                             .level = context.collective.level,
                                             .group = workers,
                                             .bytes = bucket.bytes,
                                             .gamma = context.collective.gamma},
                                            {"all-reduce", bucket.name});
    graph.after(updates[bucket.ready_after], reduced);
    // The last update of a round mixes in what the round before it sent off, at no cost worth counting.
    graph.after(reduced, overlap_ ? updates[bucket.ready_after] : round_start, 1);
  }
  MemoryUse memory = replica_memory(trace, context.optimizer);
  if (overlap_ && averages) memory.gradients += memory.parameters;  // the average on its way
  step.memory.push_back({"worker", context.workers, memory});
  return step;
}

}  // namespace epocast
