#include "strategies/synchronisation/server_side.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace epocast {

ServerSide& ServerSide::of(const ParameterPlace& place, const ServerOptions& options, const Encoding& compression) {
  return place.stage.common<ServerSide>([&] { return std::make_shared<ServerSide>(place, options, compression); });
}

ServerSide::ServerSide(const ParameterPlace& place, const ServerOptions& options, const Encoding& compression)
    : graph_(place.stage.graph()),
      context_(place.context),
      options_(options),
      compression_(compression),
      devices_(place.stage.ranks().devices),
      workers_(place.stage.group()) {
  CyclicTaskGraph& graph = graph_;
  const GroupId workers = workers_;
  graph.set_slowdown(place.stage.lanes().front().compute, options.slowdown(context_, devices_));
  for (const DeviceId device : options.devices(context_, devices_, place.chunk.stage)) {
    const std::string name = (place.by_layer ? "" : "stage " + std::to_string(place.chunk.stage) + " ") + "server " +
                             std::to_string(servers_.size());
    const GroupId group = graph.add_group(name, {device});
    // Of one request at a time, what has begun goes on before another push.
    const Discipline served = options_.replies() ? Discipline::priority : Discipline::fifo;
    Server server{name, device, group, graph.add_queue(name, group, QueueRole::server, served), graph.add_store(name)};
    if (options_.replies()) server.down = server.up = server.queue;
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
bool ServerSide::moves(int server) const { return devices_.size() > 1 || devices_.front() != at(server).device; }

TaskId ServerSide::transfer(const Server& server, bool up, const ParameterPiece& piece) {
  const Label label{up ? "push" : "pull", piece.name};
  const QueueId queue = up ? server.up : server.down;
  if (!moves(piece.server)) return graph_.compute_for(workers_, QueueId::none, Seconds(0), label);
  const TaskId task = graph_.transfer(
      workers_, queue,
      up ? Transfer{workers_, server.group, piece.bytes} : Transfer{server.group, workers_, piece.bytes}, label);
  graph_.set_priority(task, options_.replies() ? (up ? 1 : 0) : static_cast<int>(piece.layers.front()));
  return task;
}

/// Behind the rest of a reply, and with no latency of its own.
TaskId ServerSide::end_of_reply(const Server& server, const ParameterPiece& piece, Bytes bytes) {
  return graph_.transfer(workers_, QueueId::none,
                         {server.group, workers_, bytes, {.within_node = Seconds(0), .across_nodes = Seconds(0)}},
                         {"end of reply", piece.name});
}

TaskId ServerSide::copy(QueueId queue, const ParameterPiece& piece, const char* operation) {
  return graph_.compute(queue, Seconds(piece.bytes.value * options_.copy) + options_.overhead, {operation, piece.name});
}

TaskChain ServerSide::pull(const ParameterPiece& whole) {
  TaskChain chain;
  ParameterPiece piece = whole;
  const Bytes buffered = std::min(options_.reply_buffer, whole.bytes);
  piece.bytes -= buffered;
  chain.first = chain.last = transfer(at(piece.server), false, piece);
  if (!moves(piece.server)) return chain;
  if (buffered.value > 0) {
    const TaskId end = end_of_reply(at(piece.server), piece, buffered);
    graph_.after(chain.last, end);
    chain.last = end;
  }
  if (options_.service > 0) {
    chain.first = graph_.compute_for(workers_, at(piece.server).out, service_time(piece.bytes), {"serve", piece.name});
    graph_.after(chain.first, chain.last);
  }
  if (copies()) {
    const TaskId unpacked = copy(unpack_, whole, "unpack");
    graph_.after(chain.last, unpacked);
    chain.last = unpacked;
  }
  return chain;
}

TaskChain ServerSide::push(const ParameterPiece& whole) {
  TaskChain chain;
  ParameterPiece piece = whole;
  piece.bytes = compression_.compressed(whole.gradients);
  chain.first = chain.last = transfer(at(piece.server), true, piece);
  if (!moves(piece.server) || !copies()) return chain;
  chain.first = copy(pack_, piece, "pack");
  graph_.after(chain.first, chain.last);
  return chain;
}

DeviceTime ServerSide::encode_time(const ParameterPiece& piece) const {
  if (!moves(piece.server)) return {};
  return context_.on_each_worker(
      [&](const Device& device) { return compression_.encode_time(piece.gradients, device); });
}

Bytes ServerSide::rest(const std::vector<ParameterPiece>& pieces) const {
  Bytes out;
  for (const ParameterPiece& piece : pieces)
    if (moves(piece.server)) out += compression_.rest(piece.gradients);
  return out;
}

Seconds ServerSide::receive_time(const ParameterPiece& piece) const {
  const Seconds taken = service_time(compression_.compressed(piece.gradients));
  if (!encodes() || !moves(piece.server)) return taken;
  const DeviceId device = at(piece.server).device;
  return taken + compression_.decode_time(piece.gradients, context_.device(device), 1);
}

Seconds ServerSide::memory_time(int server, Bytes bytes, int accesses) const {
  return bytes * accesses / context_.cluster.devices[static_cast<std::size_t>(at(server).device)].memory_bandwidth;
}

bool ServerSide::counts_versions(int server) {
  return !std::exchange(servers_[static_cast<std::size_t>(server)].counted, true);
}

WorkloadTrace ServerSide::trace(const WorkloadTrace& of_workers) const {
  std::vector<DeviceId> all;
  for (const Server& server : servers_) all.push_back(server.device);
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

std::vector<DeviceMemory> ServerSide::memory(const std::vector<ParameterPiece>& pieces, const WorkloadTrace& trace,
                                             int parts, double state_share) const {
  std::vector<DeviceMemory> out;
  for (const Server& server : servers_) out.push_back({server.name, {server.device}, {}});
  for (const ParameterPiece& piece : pieces) {
    auto& [name, devices, use, layers] = out[static_cast<std::size_t>(piece.server)];
    const Bytes held = piece.bytes * parts;
    Bytes whole;
    for (const std::size_t l : piece.layers) whole += trace.layers[l].parameters;
    for (const std::size_t l : piece.layers)
      layers[l].lasting += held * (1 + state_share) * (trace.layers[l].parameters / whole);
    use.parameters += held;
    use.gradients += held;
    use.optimizer_state += held * state_share;
  }
  return out;
}

}  // namespace epocast
