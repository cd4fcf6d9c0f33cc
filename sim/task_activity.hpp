#pragma once
// What tasks mean for the time accounts of devices.

#include <vector>

#include "sim/activity.hpp"
#include "sim/compiled_graph.hpp"

namespace epocast {

/// Books the beginnings and ends of instances on the devices that they keep busy.
class TaskActivity {
 public:
  TaskActivity(const CompiledGraph& graph, std::size_t devices, double start)
      : graph_(graph), accounts_(devices, start) {}

  void begins(Instance i, double now) { book(i, now, true); }
  void ends(Instance i, double now) { book(i, now, false); }

  const ActivityAccounts& accounts() const { return accounts_; }
  /// Devices with queues that are no servers': those that averages over workers include.
  std::vector<DeviceId> workers(std::size_t devices) const;

 private:
  void book(Instance i, double now, bool begins);

  const CompiledGraph& graph_;
  ActivityAccounts accounts_;
};

}  // namespace epocast
