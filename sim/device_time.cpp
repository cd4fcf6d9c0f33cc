#include "sim/device_time.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace epocast {

DeviceTime::DeviceTime(std::shared_ptr<const DeviceKinds> kinds, std::vector<Seconds> by_kind)
    : longest_(*std::ranges::max_element(by_kind)) {
  by_kind_ = std::make_shared<const ByKind>(ByKind{std::move(kinds), std::move(by_kind)});
}

Seconds DeviceTime::shortest() const { return by_kind_ ? *std::ranges::min_element(by_kind_->times) : longest_; }

DeviceTime operator+(const DeviceTime& a, const DeviceTime& b) {
  if (!a.by_kind_ && !b.by_kind_) return a.longest_ + b.longest_;
  const auto& kinds = a.by_kind_ ? a.by_kind_->kinds : b.by_kind_->kinds;
  assert(!a.by_kind_ || !b.by_kind_ || kinds == b.by_kind_->kinds || *kinds == *b.by_kind_->kinds);
  return DeviceTime::each(kinds, [&](DeviceId device) { return a.on(device) + b.on(device); });
}

DeviceTime operator*(const DeviceTime& a, double k) {
  if (!a.by_kind_) return a.longest_ * k;
  return DeviceTime::each(a.by_kind_->kinds, [&](DeviceId device) { return a.on(device) * k; });
}

DeviceTime operator/(const DeviceTime& a, double k) {
  if (!a.by_kind_) return a.longest_ / k;
  return DeviceTime::each(a.by_kind_->kinds, [&](DeviceId device) { return a.on(device) / k; });
}

}  // namespace epocast
