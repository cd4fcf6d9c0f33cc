#pragma once
// Parameter servers in a task graph: what lies between a worker and the parameters.

#include <vector>

#include "sim/strategy.hpp"
#include "strategies/server_options.hpp"

namespace epocast {

/// Tasks one after the other.
struct TaskChain {
  TaskId first{};
  TaskId last{};
};

/// Adds servers, their queues and connections to a graph, and messages to and from them.
class ServerSide {
 public:
  /// Throws ConfigError for options that do not fit the context.
  ServerSide(CyclicTaskGraph& graph, const StrategyContext& context, GroupId workers, const ServerOptions& options);

  int count() const { return static_cast<int>(servers_.size()); }
  QueueId queue(int server) const { return at(server).queue; }
  StoreId store(int server) const { return at(server).store; }
  std::vector<DeviceId> devices() const;
  GroupId group(int server) const { return at(server).group; }

  /// Every worker gets a piece from its server: given out by the server, sent, copied by the worker.
  TaskChain pull(const ParameterPiece& piece);
  /// Every worker sends as much to the piece's server: copied by the worker, sent. Taking it in is receive_time().
  TaskChain push(const ParameterPiece& piece);

  /// Time in which a server's threads take in or give out so much.
  Seconds receive_time(Bytes bytes) const { return Seconds(bytes.value * options_.service); }
  /// Time in which a server reads and writes `bytes` of memory so many times.
  Seconds memory_time(int server, Bytes bytes, int accesses) const;
  /// The workers' trace as it would be on the servers' devices.
  WorkloadTrace trace(const WorkloadTrace& of_workers) const;
  /// Time in which a piece's server updates it as a device that trains would: its layers' update times in trace(), in
  /// proportion to the share of them that it holds.
  Seconds update_time(const ParameterPiece& piece, const WorkloadTrace& on_servers) const;

 private:
  struct Server {
    DeviceId device = 0;
    GroupId group{};
    QueueId queue{};
    StoreId store{};
    QueueId out = QueueId::none;                       ///< threads that give out parameters
    QueueId down = QueueId::none, up = QueueId::none;  ///< the workers' connections to it, by direction
  };
  const Server& at(int server) const { return servers_[static_cast<std::size_t>(server)]; }
  bool moves(int server) const;
  TaskId transfer(const Server& server, bool up, const ParameterPiece& piece);
  TaskId copy(QueueId queue, const ParameterPiece& piece, const char* operation);
  bool copies() const { return options_.copy > 0 || options_.overhead.value > 0; }

  CyclicTaskGraph& graph_;
  const StrategyContext& context_;
  const ServerOptions& options_;
  GroupId workers_;
  std::vector<Server> servers_;
  QueueId pack_ = QueueId::none, unpack_ = QueueId::none;
};

/// Memory of workers, as given, and of servers, which hold parameters, one gradient and `state_values` of state per
/// parameter; a device that is both holds both.
std::vector<DeviceMemory> served_memory(const MemoryUse& worker, int state_values, const StrategyContext& context,
                                        const std::vector<ParameterPiece>& pieces,
                                        const std::vector<DeviceId>& servers);

}  // namespace epocast
