#pragma once
// Computations that are slower while their device communicates: copies, reductions and protocols take processors.
//
// A computation of w seconds at full speed, begun at t0, ends at t where w is the integral of the speed from t0 to t.
// The speed is 1 less what communications take that the device takes part in, collectives from their copies on; times
// the pace of a device that is slower for a while, or stands still, for other reasons. Kernels that move bytes take a
// share as long as there is any. Processors that move them have so much to do for each message, as fast as its links
// would carry it alone; who shares links has longer to wait, but no more of that.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/durations.hpp"
#include "sim/simgrid/engine.hpp"

namespace epocast {

/// What one communication takes from each of its devices.
struct CommunicationLoad {
  double kernels = 0;  ///< share of its speed, 0 .. 1, until it ends
  double rate = 0;     ///< share of it that moving the bytes takes until `work` is done
  double work = 0;     ///< s of the device's processors

  bool any() const { return kernels > 0 || rate > 0; }
};

class Interference {
 public:
  static constexpr double kMost = 0.95;  ///< share that communications take; assumed: schedulers let nothing starve

  /// Without `any`, nothing is ever slowed down.
  Interference(const CompiledGraph& graph, const Durations& durations, bool any, std::size_t devices)
      : graph_(graph), durations_(durations), devices_(any ? devices : 0) {}

  /// Whether the instance is a computation that communication slows down.
  bool slows(Instance i) const;
  /// When a computation of `work` s at full speed that begins now ends if nothing changes; infinite if never.
  double begins(Instance i, double work, double now);
  /// Whether a date that was promised for its end still holds; if so, the computation has ended.
  bool ends(Instance i, double now);

  /// A communication begins or ends. Calls move(instance, date) for each computation that now ends at another date,
  /// which is finite, and settle(device, date) for each device that pays() is to be told of then.
  template <class Move, class Settle>
  void communicates(Instance i, const CommunicationLoad& load, bool begins, double now, Move move, Settle settle) {
    if (devices_.empty() || !load.any()) return;
    for_each_device(i, [&](DeviceId device) {
      change(
          device, now,
          [&](std::vector<Moving>& moving) {
            if (begins) return moving.push_back({i, load});
            const auto own = std::ranges::find_if(moving, [&](const Moving& m) { return same(m.instance, i); });
            if (own != moving.end()) moving.erase(own);
          },
          move, settle);
    });
  }

  /// Processors of the device may have done what they had to do for a message.
  template <class Move, class Settle>
  void pays(DeviceId device, double now, Move move, Settle settle) {
    if (state(device).paid_at > now + SimEngine::tolerance(now)) return;  // another date has taken its place
    change(
        device, now, [](const std::vector<Moving>&) {}, move, settle);
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
  struct Moving {
    Instance instance;
    CommunicationLoad load;  ///< its work: what is left, at DeviceState::since
  };
  struct DeviceState {
    std::vector<Moving> moving;
    std::vector<Running> running;
    double since = 0;
    double paid_at = std::numeric_limits<double>::infinity();  ///< when the next message's work is done
  };
  /// Shares of a device that communications take, and of what its processors would do how much they do.
  struct Taken {
    double all = 0, done = 1;
  };

  static bool same(Instance a, Instance b) { return a.task == b.task && a.rank == b.rank; }
  static Taken taken(const DeviceState& state);
  static double speed(const DeviceState& state) { return 1 - taken(state).all; }
  static void work_off(DeviceState& state, double now);
  static double next_paid(const DeviceState& state);
  DeviceState& state(DeviceId device) { return devices_[static_cast<std::size_t>(device)]; }

  template <class Visit>
  void for_each_device(Instance i, Visit visit) const {
    const Task& task = graph_.task(i.task);
    if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
      for (const GroupId end : {transfer->from, transfer->to}) visit(graph_.device_of(end, i.rank));
    } else if (graph_.folded) {
      visit(graph_.device(i));
    } else {
      const std::vector<DeviceId>& devices = graph_.graph->group(task.ranks).devices;
      task.axis.for_each_rank(i.rank, [&](std::uint32_t rank) { visit(devices[rank]); });
    }
  }

  template <class Edit, class Move, class Settle>
  void change(DeviceId device, double now, Edit edit, Move move, Settle settle) {
    DeviceState& here = state(device);
    const double before = speed(here);
    work_off(here, now);
    edit(here.moving);
    const double paid_at = next_paid(here);
    if (paid_at != std::exchange(here.paid_at, paid_at) && std::isfinite(paid_at)) settle(device, paid_at);
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
