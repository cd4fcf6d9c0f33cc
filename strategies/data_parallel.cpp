#include "strategies/data_parallel.hpp"

#include <algorithm>

#include "strategies/choice.hpp"
#include "strategies/layer_passes.hpp"

namespace epocast {
namespace {

/// Gradients that one all-reduce carries.
struct Bucket {
  std::string name;  ///< of the tensor or layer, or of the first and last layer in it
  Bytes bytes;
  std::size_t ready_after;  ///< layer whose backward pass makes the last of them
};

struct Buckets {
  std::vector<Bucket> all;                 ///< in the order in which the backward pass makes them
  std::vector<std::size_t> last_of_layer;  ///< by layer: the bucket that carries its last gradient
};

Buckets make_buckets(const WorkloadTrace& trace, DataParallel::Granularity granularity, Bytes limit) {
  using enum DataParallel::Granularity;
  Buckets out{{}, std::vector<std::size_t>(trace.layers.size(), 0)};
  std::string first;  // layer that opened the current bucket
  for (std::size_t l = trace.layers.size(); l-- > 0;) {
    const LayerTrace& current = trace.layers[l];
    for (std::size_t g = 0; g < current.gradients.size(); ++g) {
      // Like DDP's, a bucket is closed once it has reached its size: it may exceed it by its last tensor.
      const bool open = out.all.empty() || granularity == tensor || (granularity == layer && g == 0) ||
                        (granularity == bucket && out.all.back().bytes >= limit);
      if (open) {
        first = current.name;
        out.all.push_back({granularity == tensor ? current.gradients[g].name : first, Bytes(0), l});
      }
      Bucket& carrier = out.all.back();
      carrier.bytes += current.gradients[g].bytes;
      carrier.ready_after = l;
      if (first != current.name) carrier.name = first + ".." + current.name;
      out.last_of_layer[l] = out.all.size() - 1;
    }
  }
  return out;
}

}  // namespace

EntryInfo DataParallel::info() {
  return {"data_parallel",
          "synchronous data parallelism with all-reduce",
          {{"granularity", "", "tensor | layer | bucket | model", "bucket", "what one all-reduce carries"},
           {"bucket", "bytes", "> 0", "25 MiB", "size at which a bucket is closed (granularity: bucket)"},
           {"overlap", "", "true | false", "true", "start all-reduces during the backward pass"}}};
}

DataParallel::DataParallel(const ConfigNode& options)
    : granularity_(choose(options, "granularity",
                          {{"tensor", Granularity::tensor},
                           {"layer", Granularity::layer},
                           {"bucket", Granularity::bucket},
                           {"model", Granularity::model}},
                          Granularity::bucket)),
      bucket_(options.get("bucket", Bytes(25.0 * (1 << 20)), Range{1, 1e15})),
      overlap_(options.get("overlap", true)) {
  if (options.has("bucket") && granularity_ != Granularity::bucket)
    throw options.at("bucket").error("a bucket size has no effect with this granularity; use granularity: bucket");
}

TrainingStep DataParallel::compile(const StrategyContext& context) const {
  const WorkloadTrace trace = context.trace(context.worker_batch());
  TrainingStep step;
  CyclicTaskGraph& graph = step.graph;
  const GroupId workers = graph.add_group("workers", context.workers);
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  const QueueId communication = graph.add_queue("communication", workers, QueueRole::communication, Discipline::fifo);

  add_forward(graph, compute, trace);
  const LayerPass backward = add_backward(graph, compute, trace);

  const Buckets buckets = make_buckets(trace, granularity_, bucket_);
  std::vector<TaskId> reduced;
  for (const Bucket& bucket : buckets.all) {
    if (context.workers.size() == 1) break;  // one worker has nobody to reduce with
    reduced.push_back(graph.collective(communication,
                                       {.op = CollectiveOp::all_reduce,
                                        .algorithm = context.collective.algorithm,
                                        .level = context.collective.level,
                                        .group = workers,
                                        .bytes = bucket.bytes,
                                        .gamma = context.collective.gamma},
                                       {"all-reduce", bucket.name}));
    graph.after(overlap_ ? backward.at(bucket.ready_after) : backward.tasks.back(), reduced.back());
  }
  for (std::size_t l = trace.layers.size(); l-- > 0;) {
    if (trace.layers[l].gradients.empty()) continue;
    const TaskId update = graph.compute(compute, trace.layers[l].times.update, {"update", trace.layers[l].name});
    if (!reduced.empty()) graph.after(reduced[buckets.last_of_layer[l]], update);
  }
  step.memory.push_back({"worker", context.workers, replica_memory(trace, context.optimizer)});
  return step;
}

}  // namespace epocast
