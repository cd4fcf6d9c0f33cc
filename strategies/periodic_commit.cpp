#include "strategies/periodic_commit.hpp"

#include <array>

#include "strategies/layer_passes.hpp"
#include "strategies/server_side.hpp"

namespace epocast {
namespace {

using enum CommitRule::Exchange;
constexpr int kOptimizer = CommitRule::kOptimizer;

constexpr std::array kRules{
    CommitRule{"downpour",
               "asynchronous: workers commit the sum of their gradients, the server applies it (Dean et al. 2012)",
               push_then_pull, false, true, 0, kOptimizer, 0, kOptimizer},
    // Normalising reads and writes the sum once.
    CommitRule{"agn", "DOWNPOUR with accumulated gradients divided by the period (Hermans 2017, chapter 4)",
               push_then_pull, false, true, 2, kOptimizer, 0, kOptimizer},
    // Hermans' chapter 5 has only headings: an adaptive step is taken to be one that keeps Adam's state.
    CommitRule{"adag",
               "DOWNPOUR with normalised gradients and an adaptive step at the server (Hermans 2017, chapter 5)",
               push_then_pull, false, true, 2, 7, 0, 2},
    // Read and write the parameters, read the gradient.
    CommitRule{"async_momentum",
               "DOWNPOUR with plain steps at the server: asynchrony itself acts as momentum (Mitliagkas et al. 2016)",
               push_then_pull, false, true, 0, 3, 0, 0},
    CommitRule{"async_local_sgd",
               "asynchronous: workers commit their parameters, the server mixes them into its own (Xie et al. 2019)",
               push_then_pull, false, false, 0, 3, 0, 0},
    // The server adds each worker's parameters to a sum, then divides it: read and write.
    CommitRule{"model_averaging",
               "synchronous: the server averages the parameters of all workers (McDonald et al. 2010)", push_then_pull,
               true, false, 0, 3, 2, 0},
    // A worker reads its parameters and the centre and writes the former; so does the server with the mean.
    CommitRule{"easgd", "synchronous elastic averaging: workers and centre attract each other (Zhang et al. 2015)",
               swap, true, false, 3, 3, 3, 0},
    // As above, and the worker writes the difference as well.
    CommitRule{"aeasgd", "asynchronous elastic averaging: workers commit their difference (Zhang et al. 2015)",
               pull_then_push, false, false, 4, 3, 0, 0},
};

/// The local steps of a period.
struct LocalSteps {
  TaskId first{};
  TaskId last{};
};

LocalSteps add_local_steps(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace, int period,
                           bool sends_gradients, const DeviceTime& accumulation) {
  LocalSteps steps;
  for (int k = 0; k < period; ++k) {
    const int number = period > 1 ? k : -1;
    const LayerPass forward = add_forward(graph, compute, trace, {.micro_batch = number});
    const LayerPass backward = add_backward(graph, compute, trace, {.micro_batch = number});
    if (k == 0) steps.first = forward.tasks.front();
    steps.last = backward.tasks.back();
    // The first gradient is the sum so far. After the last step, gradients are all that is wanted: the pull replaces
    // what an update would make.
    if (sends_gradients && k > 0) steps.last = graph.compute(compute, accumulation, {"sum gradients", "", number});
    if (sends_gradients && k == period - 1) break;
    for (const LayerTrace& layer : trace.layers)
      if (layer.times.update.any())
        steps.last = graph.compute(compute, layer.times.update, {"local update", layer.name, number});
  }
  return steps;
}

}  // namespace

std::span<const CommitRule> commit_rules() { return kRules; }

EntryInfo PeriodicCommit::info(const CommitRule& rule) {
  EntryInfo info{rule.name,
                 rule.description,
                 {{"period", "steps", "1 .. 1000", "1", "local steps of a worker from one exchange to the next"}}};
  for (ParameterInfo& shared : ServerOptions::parameters()) info.parameters.push_back(std::move(shared));
  return info;
}

PeriodicCommit::PeriodicCommit(const CommitRule& rule, const ConfigNode& options)
    : rule_(rule), period_(static_cast<int>(options.get("period", 1, Range{1, 1000}))), servers_(options) {}

TrainingStep PeriodicCommit::compile(const StrategyContext& context) const {
  const WorkloadTrace trace = context.trace(context.worker_batch());
  TrainingStep step;
  step.steps = period_;
  CyclicTaskGraph& graph = step.graph;
  const GroupId workers = graph.add_group("workers", context.workers);
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  graph.set_slowdown(compute, servers_.slowdown(context));
  ServerSide servers(graph, context, workers, servers_);
  const WorkloadTrace updates = servers.trace(trace);

  const auto own_time = [&](int accesses) {  // in which a worker reads and writes its parameters so many times
    return context.on_each_worker(
        [&](const Device& device) { return trace.parameter_bytes() * accesses / device.memory_bandwidth; });
  };
  const LocalSteps steps = add_local_steps(graph, compute, trace, period_, rule_.sends_gradients, own_time(3));
  TaskId ready = steps.last;
  if (rule_.prepare_accesses > 0)
    ready =
        graph.compute(compute, own_time(rule_.prepare_accesses), {rule_.sends_gradients ? "normalise" : "elastic", ""});

  const std::vector<ParameterPiece> pieces =
      place_parameters(trace, servers.count(), servers_.placement, MessageGranularity::model);
  for (const ParameterPiece& piece : pieces) {
    const QueueId queue = servers.queue(piece.server);
    const TaskChain pull = servers.pull(piece), push = servers.push(piece);
    const Seconds work = rule_.commit_accesses == kOptimizer
                             ? servers.update_time(piece, updates)
                             : servers.memory_time(piece.server, piece.bytes, rule_.commit_accesses);
    TaskId applied = graph.compute_for(workers, queue, servers.receive_time(piece.bytes) + work,
                                       {rule_.waits_for_all ? "accumulate" : "apply", piece.name});
    graph.after(push.last, applied);
    if (rule_.waits_for_all) {
      const TaskId round = graph.compute(queue, servers.memory_time(piece.server, piece.bytes, rule_.round_accesses),
                                         {"average", piece.name});
      graph.after(applied, round);
      applied = round;
    }
    graph.after(applied, pull.first, 1);
    switch (rule_.exchange) {
      case push_then_pull:
        graph.after(pull.last, steps.first);
        graph.after(ready, push.first);
        break;
      case swap:
        graph.after(steps.last, push.first);
        graph.after(steps.last, pull.first);
        graph.after(pull.last, ready);
        break;
      case pull_then_push:
        graph.after(steps.last, pull.first);
        graph.after(pull.last, ready);
        graph.after(ready, push.first);
        break;
    }
    graph.set_version_effect(pull.first, {servers.store(piece.server), VersionEffect::read_at_start});
    graph.set_version_effect(applied, {servers.store(piece.server), VersionEffect::write_at_end});
  }

  MemoryUse worker = replica_memory(trace, context.optimizer);
  const bool updates_locally = !rule_.sends_gradients || period_ > 1;
  if (!updates_locally) worker.optimizer_state = Bytes(0);
  if (rule_.sends_gradients && period_ > 1) worker.gradients += trace.parameter_bytes();  // their sum
  if (rule_.exchange != push_then_pull) worker.parameters += trace.parameter_bytes();     // the centre
  const int state =
      rule_.server_state_values == kOptimizer ? optimizer_state_values(context.optimizer) : rule_.server_state_values;
  step.memory = served_memory(worker, state, context, pieces, servers.devices());
  return step;
}

}  // namespace epocast
