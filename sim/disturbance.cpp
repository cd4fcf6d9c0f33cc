#include "sim/disturbance.hpp"

#include <algorithm>
#include <cmath>

namespace epocast {
namespace {

constexpr double kNoDate = std::numeric_limits<double>::infinity();

/// The first repetition that can have a boundary after `date`. One less than it seems: rounding may deceive.
double first_repetition(const SlowWindow& window, double date) {
  return window.period > 0 ? std::max(0.0, std::floor((date - window.from) / window.period) - 1) : 0;
}

}  // namespace

double SlowWindow::factor_at(double date) const {
  const double first = first_repetition(*this, date);
  for (double k = first; k <= first + 2; ++k) {
    if (date >= from + k * period && date < until + k * period) return factor;
    if (period == 0) break;
  }
  return 1;
}

double SlowWindow::next_change(double date) const {
  const double first = first_repetition(*this, date);
  for (double k = first;; ++k) {
    if (from + k * period > date) return from + k * period;
    if (until + k * period > date) return until + k * period;
    if (period == 0) return kNoDate;
  }
}

double last_change(const std::vector<Disturbance>& disturbances) {
  double last = 0;
  for (const auto& [device, window] : disturbances)
    last = std::max(last, window.period > 0 ? kNoDate : std::isfinite(window.until) ? window.until : window.from);
  return last;
}

Pace::Pace(const std::vector<Disturbance>& disturbances, std::size_t devices)
    : last_change_(epocast::last_change(disturbances)) {
  if (!disturbances.empty()) windows_.resize(devices);
  for (const auto& [device, window] : disturbances) windows_[static_cast<std::size_t>(device)].push_back(window);
}

double Pace::factor(DeviceId device, double date) const {
  double product = 1;
  for (const SlowWindow& window : windows_[static_cast<std::size_t>(device)]) product *= window.factor_at(date);
  return product;
}

double Pace::next_change(DeviceId device, double date) const {
  double next = kNoDate;
  for (const SlowWindow& window : windows_[static_cast<std::size_t>(device)])
    next = std::min(next, window.next_change(date));
  return next;
}

double Pace::end_of(DeviceId device, double start, double work) const {
  if (steady(device)) return start + work;
  for (double date = start;;) {
    const double slow = factor(device, date), next = next_change(device, date);
    if (work * slow <= next - date) return date + work * slow;  // false if it stands still for a while
    if (next == kNoDate) return kNoDate;
    work -= (next - date) / slow;
    date = next;
  }
}

double Pace::work_between(DeviceId device, double from, double until) const {
  if (steady(device)) return until - from;
  double work = 0;
  while (from < until) {
    const double next = std::min(until, next_change(device, from));
    work += (next - from) / factor(device, from);  // nothing while it stands still
    from = next;
  }
  return work;
}

double Pace::resumes(DeviceId device, double date) const {
  if (steady(device)) return date;
  while (date < kNoDate && factor(device, date) == kNoDate) date = next_change(device, date);
  return date;
}

}  // namespace epocast
