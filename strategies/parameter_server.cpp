#include "strategies/parameter_server.hpp"

#include <fmt/format.h>

#include <set>

#include "strategies/choice.hpp"
#include "strategies/layer_passes.hpp"
#include "strategies/server_side.hpp"

namespace epocast {
namespace {

/// To add one worker's gradient to a sum in the server's memory: two reads and a write of each value.
constexpr int kAccumulationAccesses = 3;

/// How many steps a worker may be ahead of the slowest; absent: any number.
std::optional<int> read_staleness(const ConfigNode& options, ParameterServer::Mode mode) {
  if (mode != ParameterServer::Mode::stale) {
    if (options.has("staleness"))
      throw options.at("staleness").error("a bound has no effect in this mode; use mode: stale");
    return mode == ParameterServer::Mode::async ? std::nullopt : std::optional(0);
  }
  if (!options.has("staleness")) return 1;
  return count_or(options.at("staleness"), "infinite", Range{0, 1e6});
}

int read_backup(const ConfigNode& options, ParameterServer::Mode mode) {
  if (mode == ParameterServer::Mode::backup) return static_cast<int>(options.get("backup", 1, Range{0, 1e6}));
  if (options.has("backup")) throw options.at("backup").error("no worker is spare in this mode; use mode: backup");
  return 0;
}

}  // namespace

EntryInfo ParameterServer::info() {
  EntryInfo info{
      "parameter_server",
      "workers push gradients to parameter servers and pull new parameters",
      {{"mode", "", "sync | async | stale | backup", "sync",
        "wait for the gradients of all workers; apply each as it comes; that within a bound; or wait for all but a "
        "few"},
       {"staleness", "steps", ">= 0, infinite", "1", "how far a worker may be ahead of the slowest (mode: stale)"},
       {"backup", "workers", "0 .. workers - 1", "1", "whose gradients, the last to come, are dropped (mode: backup)"},
       {"granularity", "", "layer | model", "layer", "what one message carries: a layer, or all that a server holds"},
       {"overlap", "", "true | false", "true",
        "push during the backward pass and pull during the forward pass, as far as the granularity allows; without, a "
        "step "
        "begins when all updates of the worker's last one have ended"}}};
  for (ParameterInfo& shared : ServerOptions::parameters()) info.parameters.push_back(std::move(shared));
  return info;
}

ParameterServer::ParameterServer(const ConfigNode& options)
    : options_(options),
      mode_(choose(options, "mode",
                   {{"sync", Mode::sync}, {"async", Mode::async}, {"stale", Mode::stale}, {"backup", Mode::backup}},
                   Mode::sync)),
      staleness_(read_staleness(options, mode_)),
      backup_(read_backup(options, mode_)),
      granularity_(choose(options, "granularity",
                          {{"layer", MessageGranularity::layer}, {"model", MessageGranularity::model}},
                          MessageGranularity::layer)),
      overlap_(options.get("overlap", true)),
      servers_(options) {}

void ParameterServer::check(const StrategyContext& context) const {
  const auto workers = static_cast<int>(context.workers.size());
  if (mode_ == Mode::backup && backup_ >= workers)
    throw(options_.has("backup") ? options_.at("backup") : options_)
        .error(fmt::format("{} of {} workers are spare: none is left to wait for; set backup to at most {}", backup_,
                           workers, workers - 1));
}

TrainingStep ParameterServer::compile(const StrategyContext& context) const {
  check(context);
  const WorkloadTrace trace = context.trace(context.worker_batch());
  TrainingStep step;
  CyclicTaskGraph& graph = step.graph;
  const GroupId workers = graph.add_group("workers", context.workers);
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);
  graph.set_slowdown(compute, servers_.slowdown(context));
  ServerSide servers(graph, context, workers, servers_);
  const WorkloadTrace updates = servers.trace(trace);

  const LayerPass forward = add_forward(graph, compute, trace);
  const LayerPass backward = add_backward(graph, compute, trace);
  // With bound 0 all gradients of a step are there before anybody pulls: the server may sum them and update once.
  const bool summed = staleness_ == 0;

  // Who is not waited for begins a step when its last one has ended, unless all have updated that step without it.
  std::optional<TaskId> begin;
  if (backup_ > 0) {
    begin = graph.compute_for(workers, QueueId::none, Seconds(0), {"begin", ""});
    graph.after(backward.tasks.back(), *begin, 1);
  }

  // Without overlap a step is one whole: nothing of it begins before all updates that the last one led to.
  std::optional<TaskId> start;
  if (!overlap_) start = graph.compute_for(workers, QueueId::none, Seconds(0), {"start", ""});

  std::set<int> versioned;  // one piece of each server counts its versions
  const std::vector<ParameterPiece> pieces = place_parameters(trace, servers.count(), servers_.placement, granularity_);
  for (const ParameterPiece& piece : pieces) {
    const QueueId queue = servers.queue(piece.server);
    const TaskChain pull = servers.pull(piece);
    const TaskChain push = servers.push(piece);

    // On its way forward, a worker needs the piece at the first layer in it; on its way back it reaches that layer
    // last.
    const std::size_t first = piece.layers.front();
    graph.after(pull.last, overlap_ ? forward.at(first) : forward.tasks.front());
    graph.after(overlap_ ? backward.at(first) : backward.tasks.back(), push.first);

    const Seconds received = servers.receive_time(piece.bytes), update = servers.update_time(piece, updates);
    TaskId updated{};
    if (summed) {
      const Seconds sum = servers.memory_time(piece.server, piece.bytes, kAccumulationAccesses);
      const TaskId summing = graph.compute_for(workers, queue, received + sum, {"accumulate", piece.name});
      updated = graph.compute(queue, update, {"update", piece.name});
      graph.after(push.last, summing);
      graph.after(summing, updated);
      if (begin) {
        graph.after(*begin, pull.first);
        graph.set_quorum(updated, static_cast<int>(context.workers.size()) - backup_);
        graph.obsolete_after(summing, updated);
        graph.obsolete_after(*begin, updated);
      }
    } else {
      updated = graph.compute_for(workers, queue, received + update, {"update", piece.name});
      graph.after(push.last, updated);
      if (staleness_) {
        // Who pulls for the step after next but `bound` needs everybody's update of this one.
        const TaskId bound =
            graph.compute_for(servers.group(piece.server), QueueId::none, Seconds(0), {"bound", piece.name});
        graph.after(updated, bound);
        graph.after(bound, start.value_or(pull.first), 1 + *staleness_);
      }
    }
    graph.after(updated, start.value_or(pull.first), 1);
    if (start) graph.after(*start, pull.first);
    // Late gradients are dropped, not stale: with backup workers there is nothing to count.
    if (!begin && versioned.insert(piece.server).second) {
      graph.set_version_effect(pull.first, {servers.store(piece.server), VersionEffect::read_at_start});
      graph.set_version_effect(updated, {servers.store(piece.server), VersionEffect::write_at_end});
    }
  }
  MemoryUse worker = replica_memory(trace, context.optimizer);
  worker.optimizer_state = Bytes(0);  // the servers keep it
  step.memory = served_memory(worker, optimizer_state_values(context.optimizer), context, pieces, servers.devices());
  return step;
}

}  // namespace epocast
