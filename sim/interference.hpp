#pragma once
// Computations that are slower while their device communicates: copies, reductions and protocols take processors.
//
// A computation of w seconds at full speed, begun at t0, ends at t where w is the integral of the speed from t0 to t.
// The speed is 1, and 1 - lost while the device takes part in one communication or more, in a collective from its
// copies on; times the pace of a device that is slower for a while, or stands still, for other reasons.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <variant>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/durations.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

class Interference {
 public:
  /// Without `any`, nothing is ever slowed down.
  Interference(const CompiledGraph& graph, const Durations& durations, bool any, std::size_t devices)
      : graph_(graph), durations_(durations), devices_(any ? devices : 0) {}

  /// Whether the instance is a computation that communication slows down.
  bool slows(Instance i) const;
  /// When a computation of `work` s at full speed that begins now ends if nothing changes; infinite if never.
  double begins(Instance i, double work, double now);
  /// Whether a date that was promised for its end still holds; if so, the computation has ended.
  bool ends(Instance i, double now);

  /// A communication begins or ends that takes this share of its devices, 0 <= share < 1, the same at both dates. Calls
  /// move(instance, date) for each computation that now ends at another date, which is finite.
  template <class Move>
  void communicates(Instance i, double share, bool begins, double now, Move move) {
    if (devices_.empty() || share == 0) return;
    for_each_device(i, [&](DeviceId device) { change(device, share, begins, now, move); });
  }

  /// Whether one rank may stand for all: every group is the same devices.
  static bool folds(const CyclicTaskGraph& graph);

 private:
  struct Running {
    Instance instance;
    double remaining = 0;  ///< s at full speed, at `since`
    double since = 0;
    double due = 0;
  };
  struct DeviceState {
    std::map<double, int> shares;  ///< that communications under way take, and how many take each
    std::vector<Running> running;
  };

  static double speed(const DeviceState& state) {
    return 1 - (state.shares.empty() ? 0 : state.shares.rbegin()->first);
  }
  DeviceState& state(DeviceId device) { return devices_[static_cast<std::size_t>(device)]; }

  template <class Visit>
  void for_each_device(Instance i, Visit visit) const {
    const Task& task = graph_.task(i.task);
    if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
      for (const GroupId end : {transfer->from, transfer->to}) {
        const std::vector<DeviceId>& devices = graph_.graph->group(end).devices;
        visit(devices[devices.size() == 1 ? 0 : i.rank]);
      }
    } else if (graph_.folded) {
      visit(graph_.device(i));
    } else {
      const std::vector<DeviceId>& devices = graph_.graph->group(task.ranks).devices;
      task.axis.for_each_rank(i.rank, [&](std::uint32_t rank) { visit(devices[rank]); });
    }
  }

  template <class Move>
  void change(DeviceId device, double share, bool begins, double now, Move move) {
    DeviceState& here = state(device);
    const double before = speed(here);
    const auto taken = here.shares.try_emplace(share, 0).first;
    taken->second += begins ? 1 : -1;
    if (taken->second == 0) here.shares.erase(taken);
    const double after = speed(here);
    if (before == after) return;
    for (Running& running : here.running) {
      const double worked = durations_.work_between(running.instance, running.since, now);
      running.remaining = std::max(0.0, running.remaining - worked * before);
      running.since = now;
      running.due = durations_.end_of(running.instance, now, running.remaining / after);
      if (std::isfinite(running.due)) move(running.instance, running.due);
    }
  }

  const CompiledGraph& graph_;
  const Durations& durations_;
  std::vector<DeviceState> devices_;  ///< empty if nothing is ever lost
};

}  // namespace epocast
