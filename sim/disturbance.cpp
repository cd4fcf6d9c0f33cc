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

/// So many stops that follow on each other do so for ever.
constexpr int kStopsWithoutGap = 100'000;
/// A shorter gap between stops, as a share of the shortest period, is rounding.
constexpr double kShortestGap = 1e-9;

/// From when on a device with these windows stands still for ever; infinite if it does not.
double date_of_halt(const std::vector<SlowWindow>& windows) {
  double halt = kNoDate, begun = 0, shortest = kNoDate;
  std::vector<SlowWindow> stops;  // that come again
  for (const SlowWindow& window : windows) {
    if (window.factor < kNoDate) continue;
    if (window.until == kNoDate) halt = std::min(halt, window.from);
    if (window.period == 0) continue;
    stops.push_back(window);
    begun = std::max(begun, window.from);
    shortest = std::min(shortest, window.period);
  }
  double date = begun;
  for (int n = 0; n < kStopsWithoutGap; ++n) {
    const double soon = date + kShortestGap * shortest;
    double end = date;
    for (const SlowWindow& stop : stops)
      if (stop.factor_at(soon) == kNoDate) end = std::max(end, stop.next_change(soon));
    if (end == date) return halt;
    date = end;
  }
  double since = kNoDate;
  for (int n = 0; n < kStopsWithoutGap && begun < since; ++n) {  // back to the stop that the others follow on
    since = begun;
    const double before = begun - kShortestGap * shortest;
    for (const SlowWindow& stop : stops)
      if (stop.factor_at(before) == kNoDate)
        begun = std::min(begun, stop.from + std::floor((before - stop.from) / stop.period) * stop.period);
  }
  return std::min(halt, begun);
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

Pace::Pace(const std::vector<Disturbance>& disturbances, std::size_t devices) {
  if (disturbances.empty()) return;
  windows_.resize(devices);
  for (const auto& [device, window] : disturbances) windows_[static_cast<std::size_t>(device)].push_back(window);
  for (const std::vector<SlowWindow>& windows : windows_) halts_.push_back(date_of_halt(windows));
  for (const Disturbance& disturbance : disturbances)
    last_change_ = std::max(last_change_, std::min(epocast::last_change({disturbance}), halts(disturbance.device)));
}

double Pace::factor(DeviceId device, double date) const {
  double product = 1;
  for (const SlowWindow& window : windows_[static_cast<std::size_t>(device)]) product *= window.factor_at(date);
  return product;
}

double Pace::next_change(DeviceId device, double date) const {
  double next = halts(device) > date ? halts(device) : kNoDate;
  for (const SlowWindow& window : windows_[static_cast<std::size_t>(device)])
    next = std::min(next, window.next_change(date));
  return next;
}

double Pace::end_of(DeviceId device, double start, double work) const {
  if (steady(device)) return start + work;
  for (double date = start; date < halts(device);) {
    const double slow = factor(device, date), next = next_change(device, date);
    if (work * slow <= next - date) return date + work * slow;  // false if it stands still for a while
    if (next == kNoDate) break;
    work -= (next - date) / slow;
    date = next;
  }
  return kNoDate;
}

double Pace::work_between(DeviceId device, double from, double until) const {
  if (steady(device)) return until - from;
  double work = 0;
  until = std::min(until, halts(device));
  while (from < until) {
    const double next = std::min(until, next_change(device, from));
    work += (next - from) / factor(device, from);  // nothing while it stands still
    from = next;
  }
  return work;
}

double Pace::resumes(DeviceId device, double date) const {
  if (steady(device)) return date;
  while (date < halts(device) && factor(device, date) == kNoDate) date = next_change(device, date);
  return date < halts(device) ? date : kNoDate;
}

}  // namespace epocast
