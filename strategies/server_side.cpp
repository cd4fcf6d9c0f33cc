#include "strategies/server_side.hpp"

#include <algorithm>

namespace epocast {

ServerSide::ServerSide(CyclicTaskGraph& graph, const StrategyContext& context, GroupId workers,
                       const ServerOptions& options)
    : graph_(graph), context_(context), options_(options), workers_(workers) {
  for (const DeviceId device : options.devices(context)) {
    const std::string name = "server " + std::to_string(servers_.size());
    const GroupId group = graph.add_group(name, {device});
    Server server{device, group, graph.add_queue(name, group, QueueRole::server, Discipline::fifo),
                  graph.add_store(name)};
    if (options.connection != ServerOptions::Connection::concurrent) {
      const Discipline discipline =
          options.connection == ServerOptions::Connection::priority ? Discipline::priority : Discipline::fifo;
      const auto connect = [&](const std::string& direction) {
        return graph.add_queue(direction + name, workers, QueueRole::communication, discipline);
      };
      server.down = connect("from ");
      server.up = connect("to ");
    }
    if (options.service > 0) server.out = graph.add_queue(name + " out", group, QueueRole::server, Discipline::fifo);
    servers_.push_back(server);
  }
  if (!copies()) return;
  pack_ = graph.add_queue("pack", workers, QueueRole::communication, Discipline::fifo);
  unpack_ = graph.add_queue("unpack", workers, QueueRole::communication, Discipline::fifo);
}

/// A lone worker that is its own server keeps everything in place.
bool ServerSide::moves(int server) const {
  return context_.workers.size() > 1 || context_.workers.front() != at(server).device;
}

TaskId ServerSide::transfer(const Server& server, bool up, const ParameterPiece& piece) {
  const Label label{up ? "push" : "pull", piece.name};
  const QueueId queue = up ? server.up : server.down;
  if (!moves(piece.server)) return graph_.compute_for(workers_, QueueId::none, Seconds(0), label);
  const TaskId task = graph_.transfer(
      workers_, queue,
      up ? Transfer{workers_, server.group, piece.bytes} : Transfer{server.group, workers_, piece.bytes}, label);
  graph_.set_priority(task, static_cast<int>(piece.layers.front()));
  return task;
}

TaskId ServerSide::copy(QueueId queue, const ParameterPiece& piece, const char* operation) {
  return graph_.compute(queue, Seconds(piece.bytes.value * options_.copy) + options_.overhead, {operation, piece.name});
}

TaskChain ServerSide::pull(const ParameterPiece& piece) {
  TaskChain chain;
  chain.first = chain.last = transfer(at(piece.server), false, piece);
  if (!moves(piece.server)) return chain;
  if (options_.service > 0) {
    chain.first = graph_.compute_for(workers_, at(piece.server).out, receive_time(piece.bytes), {"serve", piece.name});
    graph_.after(chain.first, chain.last);
  }
  if (copies()) {
    const TaskId unpacked = copy(unpack_, piece, "unpack");
    graph_.after(chain.last, unpacked);
    chain.last = unpacked;
  }
  return chain;
}

TaskChain ServerSide::push(const ParameterPiece& piece) {
  TaskChain chain;
  chain.first = chain.last = transfer(at(piece.server), true, piece);
  if (!moves(piece.server) || !copies()) return chain;
  chain.first = copy(pack_, piece, "pack");
  graph_.after(chain.first, chain.last);
  return chain;
}

Seconds ServerSide::memory_time(int server, Bytes bytes, int accesses) const {
  return bytes * accesses / context_.cluster.devices[static_cast<std::size_t>(at(server).device)].memory_bandwidth;
}

std::vector<DeviceId> ServerSide::devices() const {
  std::vector<DeviceId> out;
  for (const Server& server : servers_) out.push_back(server.device);
  return out;
}

WorkloadTrace ServerSide::trace(const WorkloadTrace& of_workers) const {
  const std::vector<DeviceId> all = devices();
  if (std::ranges::all_of(all, [&](DeviceId device) { return context_.kinds->knows(device); })) return of_workers;
  return context_.trace(of_workers.batch, std::make_shared<const DeviceKinds>(context_.cluster, all));
}

Seconds ServerSide::update_time(const ParameterPiece& piece, const WorkloadTrace& on_servers) const {
  Seconds time;
  Bytes whole;
  for (const std::size_t l : piece.layers) {
    time += on_servers.layers[l].times.update.on(at(piece.server).device);
    whole += on_servers.layers[l].parameters;
  }
  return time * (piece.bytes / whole);
}

std::vector<DeviceMemory> served_memory(const MemoryUse& worker, int state_values, const StrategyContext& context,
                                        const std::vector<ParameterPiece>& pieces,
                                        const std::vector<DeviceId>& servers) {
  std::vector<DeviceMemory> out{{"worker", {}, worker}};
  std::vector<MemoryUse> held(servers.size());
  for (const ParameterPiece& piece : pieces) {
    MemoryUse& server = held[static_cast<std::size_t>(piece.server)];
    server.parameters += piece.bytes;
    server.gradients += piece.bytes;
    server.optimizer_state += piece.bytes * state_values;
  }
  for (std::size_t s = 0; s < servers.size(); ++s) {
    const bool trains = std::count(context.workers.begin(), context.workers.end(), servers[s]) > 0;
    const std::string name = "server " + std::to_string(s);
    out.push_back({trains ? "worker and " + name : name, {servers[s]}, held[s]});
    if (!trains) continue;
    out.back().use.parameters += worker.parameters;
    out.back().use.gradients += worker.gradients;
    out.back().use.optimizer_state += worker.optimizer_state;
    out.back().use.activations += worker.activations;
    out.back().use.activation_gradients += worker.activation_gradients;
    out.back().use.workspace += worker.workspace;
  }
  for (const DeviceId device : context.workers)
    if (std::count(servers.begin(), servers.end(), device) == 0) out.front().devices.push_back(device);
  if (out.front().devices.empty()) out.erase(out.begin());
  return out;
}

}  // namespace epocast
