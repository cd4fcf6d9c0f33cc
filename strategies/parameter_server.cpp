#include "strategies/parameter_server.hpp"

#include <algorithm>
#include <set>

#include "strategies/choice.hpp"
#include "strategies/layer_passes.hpp"
#include "strategies/parameter_placement.hpp"

namespace epocast {
namespace {

/// Time to add one worker's gradient into a sum in the server's memory: two reads and a write of each value.
Seconds accumulation_time(Bytes bytes, const Device& server) { return bytes * 3.0 / server.memory_bandwidth; }

/// Time to update a piece: its layers' update times, in proportion to the share of them that it holds.
Seconds update_time(const ParameterPiece& piece, const WorkloadTrace& trace) {
  Seconds time;
  Bytes whole;
  for (const std::size_t l : piece.layers) {
    time += trace.layers[l].times.update;
    whole += trace.layers[l].parameters;
  }
  return time * (piece.bytes / whole);
}

}  // namespace

EntryInfo ParameterServer::info() {
  return {"parameter_server",
          "workers push gradients to parameter servers and pull new parameters",
          {{"mode", "", "sync | async", "sync", "wait for the gradients of all workers, or apply each as it comes"},
           {"servers", "count", "1 .. hosts", "1", "number of parameter servers"},
           {"placement", "", "greedy | round_robin | even", "greedy", "which server holds which layer's parameters"},
           {"location", "", "dedicated | colocated", "dedicated",
            "servers on hosts of their own, or on the workers' hosts"},
           {"granularity", "", "layer | model", "layer",
            "what one message carries: a layer, overlapping computation, or all that a server holds"}}};
}

ParameterServer::ParameterServer(const ConfigNode& options)
    : options_(options),
      mode_(choose(options, "mode", {{"sync", Mode::sync}, {"async", Mode::async}}, Mode::sync)),
      servers_(static_cast<int>(options.get("servers", 1, Range{1, 1e6}))),
      placement_(
          choose(options, "placement",
                 {{"greedy", Placement::greedy}, {"round_robin", Placement::round_robin}, {"even", Placement::even}},
                 Placement::greedy)),
      location_(choose(options, "location", {{"dedicated", Location::dedicated}, {"colocated", Location::colocated}},
                       Location::dedicated)),
      granularity_(choose(options, "granularity", {{"layer", Granularity::layer}, {"model", Granularity::model}},
                          Granularity::layer)) {}

std::vector<DeviceId> ParameterServer::server_devices(const StrategyContext& context) const {
  std::vector<DeviceId> devices;
  if (location_ == Location::colocated) {
    devices = context.workers;
  } else {
    const std::set<DeviceId> workers(context.workers.begin(), context.workers.end());
    for (DeviceId d = 0; d < static_cast<DeviceId>(context.cluster.devices.size()); ++d)
      if (!workers.contains(d)) devices.push_back(d);
  }
  if (devices.size() < static_cast<std::size_t>(servers_)) {
    const std::string have = std::to_string(devices.size());
    const ConfigNode at = options_.has("servers") ? options_.at("servers") : options_;
    throw at.error(location_ == Location::colocated
                       ? std::to_string(servers_) + " servers on the hosts of " + have +
                             " workers; set servers to at most " + have
                       : std::to_string(servers_) + " servers on hosts of their own, but the workers leave " + have +
                             " of the platform's " + std::to_string(context.cluster.devices.size()) +
                             " hosts; use fewer workers or servers, or location: colocated");
  }
  devices.resize(static_cast<std::size_t>(servers_));
  return devices;
}

TrainingStep ParameterServer::compile(const StrategyContext& context) const {
  const WorkloadTrace trace = context.trace(context.worker_batch());
  TrainingStep step;
  CyclicTaskGraph& graph = step.graph;
  const GroupId workers = graph.add_group("workers", context.workers);
  const QueueId compute = graph.add_queue("compute", workers, QueueRole::compute, Discipline::program_order);

  struct Server {
    DeviceId device;
    GroupId group;
    QueueId queue;
    StoreId store;
  };
  std::vector<Server> servers;
  for (const DeviceId device : server_devices(context)) {
    const std::string name = "server " + std::to_string(servers.size());
    const GroupId group = graph.add_group(name, {device});
    servers.push_back(
        {device, group, graph.add_queue(name, group, QueueRole::server, Discipline::fifo), graph.add_store(name)});
  }

  const LayerPass forward = add_forward(graph, compute, trace);
  const LayerPass backward = add_backward(graph, compute, trace);

  std::set<int> versioned;  // one piece of each server counts its versions
  for (const ParameterPiece& piece : place_parameters(trace, servers_, placement_, granularity_)) {
    const Server& server = servers[static_cast<std::size_t>(piece.server)];
    const Device& device = context.cluster.devices[static_cast<std::size_t>(server.device)];
    // A lone worker that is its own server keeps everything in place.
    const bool moves = context.workers.size() > 1 || context.workers.front() != server.device;
    const auto travel = [&](GroupId from, GroupId to, const char* name) {
      return moves ? graph.transfer(workers, QueueId::none, {from, to, piece.bytes}, {name, piece.name})
                   : graph.compute_for(workers, QueueId::none, Seconds(0), {name, piece.name});
    };
    const TaskId pull = travel(server.group, workers, "pull");
    const TaskId push = travel(workers, server.group, "push");

    // On its way forward, a worker needs the piece at the first layer in it; on its way back it reaches that layer
    // last.
    const std::size_t first = piece.layers.front();
    graph.after(pull, forward.at(first));
    graph.after(backward.at(first), push);

    TaskId updated{};
    if (mode_ == Mode::sync) {
      const TaskId sum =
          graph.compute_for(workers, server.queue, accumulation_time(piece.bytes, device), {"accumulate", piece.name});
      updated = graph.compute(server.queue, update_time(piece, trace), {"update", piece.name});
      graph.after(push, sum);
      graph.after(sum, updated);
    } else {
      updated = graph.compute_for(workers, server.queue, update_time(piece, trace), {"update", piece.name});
      graph.after(push, updated);
    }
    graph.after(updated, pull, 1);
    if (versioned.insert(piece.server).second) {
      graph.set_version_effect(pull, {server.store, VersionEffect::read_at_start});
      graph.set_version_effect(updated, {server.store, VersionEffect::write_at_end});
    }
  }
  step.memory.push_back({"worker", context.workers, replica_memory(trace, context.optimizer)});
  return step;
}

}  // namespace epocast
