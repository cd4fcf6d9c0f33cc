#include "strategies/synchronisation/server_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/words.hpp"
#include "strategies/step/options.hpp"

namespace epocast {
namespace {

std::optional<int> read_servers(const ConfigNode& options) {
  if (!options.has("servers")) return 1;
  return count_or(options.at("servers"), "all", Range{1, 1e6});
}

/// Those that do not train now and are not the processors of devices that could: one of each node, then another, so
/// that servers share no network card while there are nodes; first of nodes where nobody trains.
std::vector<DeviceId> spare_devices(const StrategyContext& context) {
  const std::set<DeviceId> training(context.workers.begin(), context.workers.end());
  std::set<std::string> can_train, busy;  // nodes
  for (const Device& device : context.cluster.devices)
    if (device.trains) can_train.insert(device.node);
  for (const DeviceId worker : training) busy.insert(context.device(worker).node);
  std::map<std::string, int> taken;                         // by node
  std::vector<std::tuple<bool, int, DeviceId>> candidates;  // node has workers, place among its node's, device
  for (DeviceId d = 0; d < static_cast<DeviceId>(context.cluster.devices.size()); ++d) {
    const Device& device = context.device(d);
    if (device.trains ? !training.contains(d) : !can_train.contains(device.node))
      candidates.emplace_back(busy.contains(device.node), taken[device.node]++, d);
  }
  std::ranges::sort(candidates);
  std::vector<DeviceId> out;
  for (const auto& [is_busy, place, device] : candidates) out.push_back(device);
  return out;
}

}  // namespace

std::vector<ParameterInfo> ServerOptions::parameters() {
  std::vector<ParameterInfo> out{
      {"servers", "count", "1 .. hosts, all", "1", "number of parameter servers; all: one on every worker's host"},
      {"placement", "", "greedy | round_robin | even", "greedy", "which server holds which layer's parameters"},
      {"location", "", "dedicated | colocated | device", "dedicated",
       "servers on hosts of their own; on the workers' hosts, or the processors of their nodes where there are such; "
       "or in the memory of the workers' devices"},
      {"connection", "", "concurrent | in_order | priority", "concurrent",
       "messages between a worker and a server all at once, or one at a time in each direction: the first to be "
       "ready goes first, or that of the first layer"},
      {"requests", "", "concurrent | one_at_a_time", "concurrent",
       "what a server takes: all messages at once; or a worker's push, its update and its pull, which waits for "
       "nothing else, "
       "before the next"},
      {"reply_buffer", "bytes", ">= 0", "0 B",
       "last bytes of a pull that leave by themselves while the server goes on (requests: one_at_a_time)"},
      {"copy_rate", "bytes/s", "> 0", "infinite", "how fast a worker copies or serialises a message, each way"},
      {"message_overhead", "s", "0 .. 1 h", "0 s", "of every message at a worker, each way"},
      {"server_rate", "bytes/s", "> 0", "infinite", "how fast one thread of a server takes in or gives out a message"},
      {"server_threads", "count", "1 .. 1024", "1",
       "threads of a server in each direction, which share the work on every message"},
      {"communication_cores", "cores", ">= 0", "0", "of its host that a worker's communication keeps from computing"},
      {"server_cores", "cores", ">= 0", "0", "that a server keeps from a worker on its host"}};
  for (ParameterInfo& parameter : Encoding::parameters()) out.push_back(std::move(parameter));
  return out;
}

ServerOptions::ServerOptions(const ConfigNode& options)
    : servers(read_servers(options)),
      placement(choose(options, "placement",
                       {{"greedy", ParameterPlacement::greedy},
                        {"round_robin", ParameterPlacement::round_robin},
                        {"even", ParameterPlacement::even}},
                       ParameterPlacement::greedy)),
      location(
          choose(options, "location",
                 {{"dedicated", Location::dedicated}, {"colocated", Location::colocated}, {"device", Location::device}},
                 servers ? Location::dedicated : Location::colocated)),
      connection(choose(options, "connection",
                        {{"concurrent", Connection::concurrent},
                         {"in_order", Connection::in_order},
                         {"priority", Connection::priority}},
                        Connection::concurrent)),
      requests(choose(options, "requests",
                      {{"concurrent", Requests::concurrent}, {"one_at_a_time", Requests::one_at_a_time}},
                      Requests::concurrent)),
      copy(seconds_per_byte(options, "copy_rate")),
      overhead(options.get("message_overhead", Seconds(0), Range{0, 3600})),
      service(seconds_per_byte(options, "server_rate") /
              static_cast<double>(options.get("server_threads", 1, Range{1, 1024}))),
      communication_cores(options.get("communication_cores", 0.0, Range{0, 1e6})),
      server_cores(options.get("server_cores", 0.0, Range{0, 1e6})),
      compression(options),
      options_(options) {
  if (!servers && location == Location::dedicated)
    throw options.at("location")
        .error(
            "a server on every worker's host is not on a host of its own; use location: colocated, or a number of "
            "servers");
  if (options.has("reply_buffer")) {
    reply_buffer = options.at("reply_buffer").as_bytes(Range{0, 1e15});
    if (!replies())
      throw options.at("reply_buffer").error("replies keep nobody waiting unless requests: one_at_a_time");
  }
  if (replies())
    for (const char* key : {"connection", "server_rate"})
      if (options.has(key))
        throw options.at(key).error(
            "a server that takes one request at a time has no use for this; leave out one of the two");
  if (options.has("server_threads") && !options.has("server_rate"))
    throw options.at("server_threads").error("threads have no effect without server_rate, the rate of each");
  if (location == Location::device)
    for (const char* key : {"copy_rate", "server_rate"})
      if (options.has(key))
        throw options.at(key).error(
            "parameters in device memory are not copied to the host; leave this out, or use location: colocated");
}

std::vector<DeviceId> ServerOptions::devices(const StrategyContext& context, const std::vector<DeviceId>& workers,
                                             int stage) const {
  std::vector<DeviceId> devices;
  switch (location) {
    case Location::device: devices = workers; break;
    case Location::colocated: devices = context.cluster.hosts_of(workers); break;
    case Location::dedicated: devices = spare_devices(context); break;
  }
  if (!servers) return devices;
  const auto count = static_cast<std::size_t>(*servers);
  const std::size_t before = location == Location::dedicated ? count * static_cast<std::size_t>(stage) : 0;
  if (devices.size() < before + count) {
    const ConfigNode at = options_.has("servers") ? options_.at("servers") : options_;
    const std::string wanted =
        count == 1 ? "a server on a host of its own" : fmt::format("{} servers on hosts of their own", count);
    throw at.error(location == Location::dedicated
                       ? fmt::format("{}{}, but the workers leave {} of the platform's {} hosts; use fewer workers or "
                                     "servers, or location: colocated",
                                     wanted, stage > 0 ? " for each stage" : "", devices.size(),
                                     context.cluster.devices.size())
                       : fmt::format("{} servers on the hosts of {} workers; set servers to at most {}", *servers,
                                     workers.size(), devices.size()));
  }
  const auto first = devices.begin() + static_cast<std::ptrdiff_t>(before);
  return {first, first + *servers};
}

std::vector<double> ServerOptions::slowdown(const StrategyContext& context,
                                            const std::vector<DeviceId>& workers) const {
  std::set<DeviceId> with_server;
  if (location != Location::dedicated)
    for (const DeviceId device : devices(context, workers, 0)) with_server.insert(device);
  std::vector<double> out;
  for (const DeviceId worker : workers) {
    const Device& device = context.device(worker);
    const double taken = communication_cores + (with_server.contains(worker) ? server_cores : 0);
    if (taken > 0 && taken >= device.cores)
      throw options_.at(options_.has("communication_cores") ? "communication_cores" : "server_cores")
          .error(fmt::format("communication takes {}, but '{}' has {}: none is left for computing",
                             counted(taken, "core"), device.name, device.cores));
    out.push_back(device.cores / (device.cores - taken));
  }
  return out;
}

}  // namespace epocast
