#include "strategies/gossip.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "strategies/choice.hpp"
#include "strategies/layer_passes.hpp"

namespace epocast {
namespace {

/// How far away the neighbours are, one exchange after the other.
std::vector<std::size_t> neighbour_offsets(std::size_t workers, bool exponential) {
  std::vector<std::size_t> offsets;
  for (std::size_t offset = 1; offset < workers; offset *= 2) {
    offsets.push_back(offset);
    if (!exponential) break;
  }
  return offsets;
}

/// Everybody's neighbour, in the workers' order.
std::vector<DeviceId> neighbours(const std::vector<DeviceId>& workers, std::size_t offset) {
  std::vector<DeviceId> out = workers;
  std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(offset), out.end());
  return out;
}

}  // namespace

EntryInfo Gossip::info() {
  return {
      "gossip",
      "every worker averages its parameters with a neighbour's, asynchronously and without a server",
      {{"period", "steps", "1 .. 1000", "1", "local steps of a worker from one exchange to the next"},
       {"topology", "", "ring | exponential", "ring", "the neighbour: the next worker, or 1, 2, 4, .. further in turn"},
       {"overlap", "", "true | false", "true", "exchange while the next step computes"}}};
}

Gossip::Gossip(const ConfigNode& options)
    : options_(options),
      period_(static_cast<int>(options.get("period", 1, Range{1, 1000}))),
      exponential_(choose(options, "topology", {{"ring", false}, {"exponential", true}}, false)),
      overlap_(options.get("overlap", true)) {}

TrainingStep Gossip::compile(const StrategyContext& context) const {
  if (context.workers.size() < 2) throw options_.error("gossip needs at least 2 workers; use strategy: single");
  const WorkloadTrace trace = context.trace(context.worker_batch());
  const Bytes bytes = trace.parameter_bytes();
  const DeviceTime averaging = context.on_each_worker(
      [&](const Device& device) { return bytes * 3.0 / device.memory_bandwidth; });  // two reads, one write

  TrainingStep step;
  CyclicTaskGraph& graph = step.graph;
  const GroupId workers = graph.add_group("workers", context.workers);
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  const QueueId talk = graph.add_queue("average", workers, QueueRole::communication, Discipline::fifo);

  const std::vector<std::size_t> offsets = neighbour_offsets(context.workers.size(), exponential_);
  step.steps = static_cast<std::int64_t>(offsets.size()) * period_;
  std::optional<TaskId> first_update, averaged;  // of the round; of the last exchange
  for (const std::size_t offset : offsets) {
    const GroupId others = graph.add_group("neighbours " + std::to_string(offset), neighbours(context.workers, offset));
    const QueueId answer = graph.add_queue("answer", others, QueueRole::communication, Discipline::fifo);
    TaskId last{};
    for (int k = 0; k < period_; ++k) {
      const LayerPass forward = add_forward(graph, compute, trace);
      if (k == 0 && averaged && !overlap_) graph.after(*averaged, forward.tasks.front());
      const LayerPass backward = add_backward(graph, compute, trace);
      last = backward.tasks.back();
      bool first = k == 0;
      for (const LayerTrace& layer : trace.layers) {
        if (layer.gradients.empty()) continue;
        last = graph.compute(compute, layer.times.update, {"update", layer.name});
        if (std::exchange(first, false) && overlap_) {
          if (averaged) graph.after(*averaged, last);
          if (!first_update) first_update = last;
        }
      }
      if (!overlap_ && !first_update) first_update = forward.tasks.front();
    }
    const TaskId send = graph.transfer(workers, QueueId::none, {workers, others, bytes}, {"send", ""});
    const TaskId reply = graph.transfer(workers, QueueId::none, {others, workers, bytes}, {"reply", ""});
    const TaskId theirs = graph.compute_for(workers, answer, averaging, {"average at neighbour", ""});
    averaged = graph.compute(talk, averaging, {"average", ""});
    graph.after(last, send);
    graph.after(send, reply);
    graph.after(send, theirs);
    graph.after(reply, *averaged);
  }
  graph.after(*averaged, *first_update, 1);

  MemoryUse memory = replica_memory(trace, context.optimizer);
  memory.parameters += bytes;  // the neighbour's
  step.memory.push_back({"worker", context.workers, memory});
  return step;
}

}  // namespace epocast
