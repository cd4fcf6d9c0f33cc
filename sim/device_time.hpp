#pragma once
// A time that depends on which device it is taken on: one number for all, or one for each kind of device.

#include <memory>
#include <vector>

#include "sim/device_kinds.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// Calculates like Seconds, for all kinds of devices at once. Times that are worked out with each other must be the
/// same on all devices or know the same devices.
class DeviceTime {
 public:
  DeviceTime() = default;
  /// The same on every device. Implicit, as such a time is a DeviceTime.
  DeviceTime(Seconds everywhere) : longest_(everywhere) {}  // NOLINT(google-explicit-constructor)
  /// `of` gives the time on a device, and is asked for the first of each kind.
  template <class Of>
  static DeviceTime each(const std::shared_ptr<const DeviceKinds>& kinds, Of of) {
    if (kinds->count() == 1) return of(kinds->examples().front());
    std::vector<Seconds> by_kind;
    for (const DeviceId example : kinds->examples()) by_kind.push_back(of(example));
    return {kinds, std::move(by_kind)};
  }

  /// REQUIRES: the same everywhere, or for devices among which is this one.
  Seconds on(DeviceId device) const { return by_kind_ ? by_kind_->times[by_kind_->kinds->of(device)] : longest_; }
  /// Of all kinds.
  Seconds longest() const { return longest_; }
  Seconds shortest() const;
  /// Whether it is known to be the same on every device.
  bool is_same() const { return by_kind_ == nullptr; }
  /// Whether it takes any time on some device.
  bool any() const { return longest_.value > 0; }
  /// Whether on() may be asked for the device.
  bool knows(DeviceId device) const { return !by_kind_ || by_kind_->kinds->knows(device); }

  friend DeviceTime operator+(const DeviceTime& a, const DeviceTime& b);
  friend DeviceTime operator-(const DeviceTime& a, const DeviceTime& b) { return a + b * -1; }
  friend DeviceTime operator*(const DeviceTime& a, double k);
  friend DeviceTime operator*(double k, const DeviceTime& a) { return a * k; }
  friend DeviceTime operator/(const DeviceTime& a, double k);
  DeviceTime& operator+=(const DeviceTime& o) { return *this = *this + o; }

 private:
  struct ByKind {
    std::shared_ptr<const DeviceKinds> kinds;
    std::vector<Seconds> times;
  };
  DeviceTime(std::shared_ptr<const DeviceKinds> kinds, std::vector<Seconds> by_kind);

  Seconds longest_;
  std::shared_ptr<const ByKind> by_kind_;  ///< null: the same everywhere
};

}  // namespace epocast
