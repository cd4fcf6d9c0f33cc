#pragma once
// Where slices of a trace go: lanes of devices on which no two slices overlap, and what devices are called.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// A row of a device. Slices of the same role that run at the same time get further lanes: "communication 2", ...
struct TraceLane {
  DeviceId device = 0;
  QueueRole role = QueueRole::compute;
  int number = 1;              ///< among the lanes of its role on its device
  std::int64_t free_from = 0;  ///< ns

  std::string name() const;
};

const char* to_string(QueueRole role);

class TraceLanes {
 public:
  /// The first lane of the role on the device that is free at `start`. Times in ns.
  /// REQUIRES: calls in order of `start`, start <= end.
  std::uint32_t place(DeviceId device, QueueRole role, std::int64_t start, std::int64_t end);

  const std::vector<TraceLane>& all() const { return lanes_; }

 private:
  std::vector<TraceLane> lanes_;
  std::map<std::pair<DeviceId, QueueRole>, std::vector<std::uint32_t>> of_device_;
};

/// What the devices of a run are: "skylake-3 (worker 3)", "skylake-0 (worker 0, stands for 8 interchangeable workers)".
class TraceProcesses {
 public:
  void add(const CyclicTaskGraph& graph, const Cluster& cluster, bool folded);

  std::string name(DeviceId device) const;

 private:
  struct Process {
    std::string device;
    int worker = -1, server = -1;                      ///< number, in order of appearance
    std::size_t stands_for = 0, stands_for_least = 0;  ///< ranks, most and least over the phases
  };

  std::map<DeviceId, Process> processes_;
  int workers_ = 0, servers_ = 0;
};

}  // namespace epocast
