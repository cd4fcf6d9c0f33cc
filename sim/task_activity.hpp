#pragma once
// What tasks mean for the time accounts of devices.

#include <optional>
#include <vector>

#include "sim/activity.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/device_classes.hpp"

namespace epocast {

/// A device whose time an average over devices counts so many times.
struct CountedDevice {
  DeviceId device{};
  int count = 1;
};

/// Books the beginnings and ends of instances on the devices that they keep busy.
class TaskActivity {
 public:
  TaskActivity(const CompiledGraph& graph, std::size_t devices, double start)
      : graph_(graph), accounts_(devices, start) {
    if (graph.folded) classes_.emplace(*graph.graph);
  }

  void begins(Instance i, double now) { book(i, now, true); }
  void ends(Instance i, double now) { book(i, now, false); }

  const ActivityAccounts& accounts() const { return accounts_; }
  /// Devices with queues that are no servers': those that averages over workers include.
  std::vector<CountedDevice> workers(std::size_t devices) const;

 private:
  void book(Instance i, double now, bool begins);

  /// Calls change(device) for the devices that one instance keeps busy.
  template <class Change>
  void for_each_device(Instance i, Change change) const;

  const CompiledGraph& graph_;
  std::optional<DeviceClasses> classes_;  ///< of a folded graph
  ActivityAccounts accounts_;
};

}  // namespace epocast
