#pragma once
// What all strategies with parameter servers let users choose: where the servers are, who holds which parameters, and
// what a message costs beyond the network.

#include <optional>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/step/encoding.hpp"
#include "strategies/synchronisation/parameter_placement.hpp"

namespace epocast {

/// Scope: servers on hosts of their own, on the workers' hosts (the processors of their nodes where the cluster has
/// such), or in the memory of the workers' devices. A message costs its sender and its receiver a copy (serialising,
/// memory to memory, or device to host), the server one more copy on its threads, and the network; processes that
/// communicate may keep cores of their host from computing.
/// Limits: a server's threads divide every message evenly; its arithmetic takes cores or device time from a worker on
/// the same host only as far as `server_cores` says.
struct ServerOptions {
  enum class Location { dedicated, colocated, device };
  /// How messages of one direction between a worker and a server share their connection: all at once, one at a time in
  /// the order in which they are ready, or one at a time and that of the first layer first (Jayarajan et al. 2019).
  enum class Connection { concurrent, in_order, priority };
  /// Whose messages a server takes: all at once; or a worker's push, with its update and its pull, one at a time, as a
  /// loop does that receives, updates and replies.
  enum class Requests { concurrent, one_at_a_time };

  std::optional<int> servers = 1;  ///< absent: one for every worker
  ParameterPlacement placement = ParameterPlacement::greedy;
  Location location = Location::dedicated;
  Connection connection = Connection::concurrent;
  Requests requests = Requests::concurrent;
  bool replies() const { return requests == Requests::one_at_a_time; }  ///< to each push, by a pull
  Bytes reply_buffer;              ///< of a reply's last bytes, which do not keep the server from the next request
  double copy = 0;                 ///< s per byte at a worker, each way
  Seconds overhead;                ///< of every message at a worker, each way
  double service = 0;              ///< s per byte at a server, each way, all its threads together
  double communication_cores = 0;  ///< that a worker's communication keeps from computing
  double server_cores = 0;         ///< that a server keeps from a worker on its host
  Encoding compression = {};       ///< of what workers push

  /// Reads and checks them. Throws ConfigError.
  explicit ServerOptions(const ConfigNode& options);
  static std::vector<ParameterInfo> parameters();

  /// Devices of the servers of a stage with these workers, in order: each stage has servers of its own. Throws
  /// ConfigError at the option's place if there are not enough.
  std::vector<DeviceId> devices(const StrategyContext& context, const std::vector<DeviceId>& workers, int stage) const;

  /// How many times longer than alone each worker of a stage computes. Throws ConfigError if no core is left for it.
  std::vector<double> slowdown(const StrategyContext& context, const std::vector<DeviceId>& workers) const;

 private:
  ConfigNode options_;
};

}  // namespace epocast
