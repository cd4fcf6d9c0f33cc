#pragma once
// Parameter servers in a task graph: what lies between a worker and the parameters.

#include <string>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/step/synchronisation.hpp"
#include "strategies/synchronisation/server_options.hpp"

namespace epocast {

/// Tasks one after the other.
struct TaskChain {
  TaskId first{};
  TaskId last{};
};

/// Adds a stage's servers, their queues and connections to a graph, and messages to and from them.
class ServerSide {
 public:
  /// Those of the stage that a place is on: the first of the stage's places makes them. What servers keep from workers
  /// on their hosts slows these down. `compression` is of what workers push, in its precision. Throws ConfigError for
  /// options that do not fit the context.
  static ServerSide& of(const ParameterPlace& place, const ServerOptions& options, const Encoding& compression);
  ServerSide(const ParameterPlace& place, const ServerOptions& options, const Encoding& compression);

  int count() const { return static_cast<int>(servers_.size()); }
  QueueId queue(int server) const { return at(server).queue; }
  StoreId store(int server) const { return at(server).store; }
  /// Whether this is the first time that somebody asks: one piece of each server counts its versions.
  bool counts_versions(int server);
  GroupId group(int server) const { return at(server).group; }

  /// Every worker gets a piece from its server: given out by the server, sent, copied by the worker.
  TaskChain pull(const ParameterPiece& piece);
  /// Every worker sends the piece's gradients, or what compression leaves of them, to its server: copied by the worker,
  /// sent. Taking it in is receive_time().
  TaskChain push(const ParameterPiece& piece);

  /// Whether workers must encode what they push.
  bool encodes() const { return compression_.any(); }
  /// In which they do so for a piece.
  DeviceTime encode_time(const ParameterPiece& piece) const;
  /// What a worker keeps back of them, for the next time.
  Bytes rest(const std::vector<ParameterPiece>& pieces) const;
  /// Time in which a server's threads take in what a worker pushes, and decode it.
  Seconds receive_time(const ParameterPiece& piece) const;
  /// Time in which a server reads and writes `bytes` of memory so many times.
  Seconds memory_time(int server, Bytes bytes, int accesses) const;
  /// The workers' trace as it would be on the servers' devices.
  WorkloadTrace trace(const WorkloadTrace& of_workers) const;
  /// Time in which a piece's server updates it as a device that trains would: its layers' update times in trace(), in
  /// proportion to the share of them that it holds.
  Seconds update_time(const ParameterPiece& piece, const WorkloadTrace& on_servers) const;
  /// What servers hold of pieces of a trace, of which there are so many parts: parameters, one gradient and
  /// `state_share` times as much state.
  std::vector<DeviceMemory> memory(const std::vector<ParameterPiece>& pieces, const WorkloadTrace& trace, int parts,
                                   double state_share) const;

 private:
  struct Server {
    std::string name;
    DeviceId device = 0;
    GroupId group{};
    QueueId queue{};
    StoreId store{};
    QueueId out = QueueId::none;                       ///< threads that give out parameters
    QueueId down = QueueId::none, up = QueueId::none;  ///< the workers' connections to it, by direction
    bool counted = false;
  };
  const Server& at(int server) const { return servers_[static_cast<std::size_t>(server)]; }
  bool moves(int server) const;
  TaskId transfer(const Server& server, bool up, const ParameterPiece& piece);
  TaskId end_of_reply(const Server& server, const ParameterPiece& piece, Bytes bytes);
  Seconds service_time(Bytes bytes) const { return Seconds(bytes.value * options_.service); }
  TaskId copy(QueueId queue, const ParameterPiece& piece, const char* operation);
  bool copies() const { return options_.copy > 0 || options_.overhead.value > 0; }

  CyclicTaskGraph& graph_;
  const StrategyContext& context_;
  const ServerOptions& options_;
  Encoding compression_;
  const std::vector<DeviceId>& devices_;  ///< the workers'
  GroupId workers_;
  std::vector<Server> servers_;
  QueueId pack_ = QueueId::none, unpack_ = QueueId::none;
};

}  // namespace epocast
