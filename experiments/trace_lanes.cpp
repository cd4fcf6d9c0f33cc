#include "experiments/trace_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace epocast {

const char* to_string(QueueRole role) {
  switch (role) {
    case QueueRole::compute: return "compute";
    case QueueRole::communication: return "communication";
    case QueueRole::server: return "server";
  }
  return "";
}

std::string TraceLane::name() const {
  return number == 1 ? to_string(role) : fmt::format("{} {}", to_string(role), number);
}

std::uint32_t TraceLanes::place(DeviceId device, QueueRole role, std::int64_t start, std::int64_t end) {
  assert(start <= end);
  std::vector<std::uint32_t>& candidates = of_device_[{device, role}];
  auto lane = std::find_if(candidates.begin(), candidates.end(),
                           [&](std::uint32_t candidate) { return lanes_[candidate].free_from <= start; });
  if (lane == candidates.end()) {
    lanes_.push_back({device, role, static_cast<int>(candidates.size()) + 1});
    lane = candidates.insert(lane, static_cast<std::uint32_t>(lanes_.size() - 1));
  }
  lanes_[*lane].free_from = end;
  return *lane;
}

void TraceProcesses::add(const CyclicTaskGraph& graph, const Cluster& cluster, bool folded) {
  std::map<DeviceId, std::size_t> stands_for;
  for (const Group& group : graph.groups())
    for (std::size_t r = 0; r < (folded ? 1 : group.devices.size()); ++r) {
      const DeviceId device = group.devices[r];
      processes_[device].device = cluster.devices.at(static_cast<std::size_t>(device)).name;
      std::size_t& ranks = stands_for[device];
      ranks = std::max(ranks, folded ? group.devices.size() : 1);
    }
  for (const auto& [device, ranks] : stands_for) {
    Process& process = processes_[device];
    process.stands_for = std::max(process.stands_for, ranks);
    process.stands_for_least = process.stands_for_least == 0 ? ranks : std::min(process.stands_for_least, ranks);
  }
  for (const Queue& queue : graph.queues()) {
    const auto& devices = graph.group(queue.group).devices;
    for (std::size_t r = 0; r < (folded ? 1 : devices.size()); ++r) {
      Process& process = processes_[devices[r]];
      if (queue.role == QueueRole::compute && process.worker < 0) process.worker = workers_++;
      if (queue.role == QueueRole::server && process.server < 0) process.server = servers_++;
    }
  }
}

std::string TraceProcesses::name(DeviceId device) const {
  const Process& process = processes_.at(device);
  std::vector<std::string> facts;
  if (process.worker >= 0) facts.push_back(fmt::format("worker {}", process.worker));
  if (process.server >= 0) facts.push_back(fmt::format("server {}", process.server));
  if (process.stands_for > 1) {
    const std::string least =
        process.stands_for_least == process.stands_for ? "" : fmt::format("{} to ", process.stands_for_least);
    const char* what = process.worker < 0 && process.server >= 0 ? "servers" : "workers";
    facts.push_back(fmt::format("stands for {}{} interchangeable {}", least, process.stands_for, what));
  }
  return facts.empty() ? process.device : fmt::format("{} ({})", process.device, fmt::join(facts, ", "));
}

}  // namespace epocast
