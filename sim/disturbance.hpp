#pragma once
// Times in which devices or links are slower than they should be.

#include <limits>
#include <vector>

#include "sim/cluster.hpp"

namespace epocast {

/// From `from` until `until` (excluded) everything takes `factor` times as long; again every `period` s if that is not
/// 0. Dates in s of training time. REQUIRES: from < until; period 0 or at least until - from.
struct SlowWindow {
  double from = 0;
  double until = std::numeric_limits<double>::infinity();
  double factor = 1;  ///< infinite: nothing moves
  double period = 0;

  double factor_at(double date) const;
  /// The first date after `date` at which the factor may change; infinite if it never does.
  double next_change(double date) const;
};

/// A device that computes slower, or whose links carry less, for a while.
struct Disturbance {
  DeviceId device = 0;
  SlowWindow window;
};

/// How fast each device works at which date.
class Pace {
 public:
  Pace() = default;
  Pace(const std::vector<Disturbance>& disturbances, std::size_t devices);

  bool steady(DeviceId device) const { return windows_.empty() || windows_[static_cast<std::size_t>(device)].empty(); }
  /// When `work` [s at full pace] begun at `start` is done; infinite if never.
  double end_of(DeviceId device, double start, double work) const;
  /// How much work [s at full pace] the device does from `from` until `until`.
  double work_between(DeviceId device, double from, double until) const;
  /// The first date from `date` on at which the device does not stand still; infinite if it does for ever.
  double resumes(DeviceId device, double date) const;
  /// From when on the device stands still for ever; infinite if it does not.
  double halts(DeviceId device) const { return steady(device) ? kNever : halts_[static_cast<std::size_t>(device)]; }
  /// The last date at which any pace changes; infinite if some changes for ever, 0 if none does.
  double last_change() const { return last_change_; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double factor(DeviceId device, double date) const;
  double next_change(DeviceId device, double date) const;

  std::vector<std::vector<SlowWindow>> windows_;  ///< by device
  double last_change_ = 0;
  std::vector<double> halts_;  ///< by device
};

/// The last date at which any window changes; infinite if some change for ever, 0 without windows.
double last_change(const std::vector<Disturbance>& disturbances);

}  // namespace epocast
