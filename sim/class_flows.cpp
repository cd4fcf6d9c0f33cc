#include "sim/class_flows.hpp"

#include <algorithm>
#include <cmath>

namespace epocast {

void ClassFlows::start(double now, std::uint32_t flow_class, double bytes, std::uint64_t token) {
  const FlowClass& own = classes_.classes[flow_class];
  bool meets = false;
  for (const FlowClass::Crossing& crossing : own.crossings) meets |= ++on_orbit_[crossing.orbit].under_way > 1;
  Flow flow{.flow_class = flow_class, .token = token, .left = bytes, .since = now};
  changed_ = now;
  if (meets) {
    disturb(own);
  } else {
    flow.rate = alone(own);
    flow.end = now + bytes / flow.rate;
    next_end_ = std::min(next_end_, flow.end);
  }
  flows_.push_back(flow);
}

/// The rate of a flow that meets no other [B/s].
double ClassFlows::alone(const FlowClass& own) const {
  double rate = own.most;
  for (const FlowClass::Crossing& c : own.crossings) rate = std::min(rate, classes_.bandwidth[c.orbit] / c.flows);
  return rate;
}

void ClassFlows::leave(std::uint32_t flow_class) {
  const FlowClass& own = classes_.classes[flow_class];
  bool meets = false;
  for (const FlowClass::Crossing& crossing : own.crossings) meets |= --on_orbit_[crossing.orbit].under_way > 0;
  if (meets) disturb(own);
}

void ClassFlows::disturb(const FlowClass& own) {
  settled_ = false;
  for (const FlowClass::Crossing& crossing : own.crossings)
    if (!std::exchange(on_orbit_[crossing.orbit].disturbed, true)) disturbed_.push_back(crossing.orbit);
}

double ClassFlows::next_end() {
  if (!settled_) settle();
  return next_end_;
}

/// Finds the rates of all flows that what began or ended can have changed.
void ClassFlows::settle() {
  // What is disturbed spreads over flows: in few rounds, as few flows are under way.
  touched_.clear();
  is_touched_.assign(flows_.size(), false);
  for (bool spreads = true; spreads;) {
    spreads = false;
    for (std::uint32_t f = 0; f < flows_.size(); ++f) {
      if (is_touched_[f]) continue;
      const auto& crossings = of(flows_[f]).crossings;
      if (std::ranges::none_of(crossings, [&](const auto& c) { return on_orbit_[c.orbit].disturbed; })) continue;
      is_touched_[f] = spreads = true;
      touched_.push_back(f);
      for (const FlowClass::Crossing& c : crossings)
        if (!std::exchange(on_orbit_[c.orbit].disturbed, true)) disturbed_.push_back(c.orbit);
    }
  }
  share(touched_);
  for (const std::uint32_t orbit : disturbed_) on_orbit_[orbit].disturbed = false;
  disturbed_.clear();
  settled_ = true;
  find_next_end();
}

void ClassFlows::find_next_end() {
  next_end_ = std::numeric_limits<double>::infinity();
  for (const Flow& flow : flows_) next_end_ = std::min(next_end_, flow.end);
}

/// Progressive filling: all rates grow alike until a link is full, whose flows then keep theirs.
void ClassFlows::share(const std::vector<std::uint32_t>& flows) {
  for (const std::uint32_t orbit : disturbed_)
    on_orbit_[orbit].free = classes_.bandwidth[orbit], on_orbit_[orbit].flows = 0;
  for (const std::uint32_t f : flows)
    for (const FlowClass::Crossing& c : of(flows_[f]).crossings) on_orbit_[c.orbit].flows += c.flows;
  std::vector<std::uint32_t> open = flows;
  while (!open.empty()) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::uint32_t f : open) {
      least = std::min(least, of(flows_[f]).most);
      for (const FlowClass::Crossing& c : of(flows_[f]).crossings)
        least = std::min(least, on_orbit_[c.orbit].free / on_orbit_[c.orbit].flows);
    }
    const double full = least * (1 + 1e-13);  // rounding shall not part links that fill at once
    std::vector<std::uint32_t> still_open, closed;
    for (const std::uint32_t f : open) {
      const FlowClass& own = of(flows_[f]);
      const bool bound = own.most <= full || std::ranges::any_of(own.crossings, [&](const auto& c) {
                           return on_orbit_[c.orbit].free <= full * on_orbit_[c.orbit].flows;
                         });
      (bound ? closed : still_open).push_back(f);
    }
    for (const std::uint32_t f : closed) {
      Flow& flow = flows_[f];
      for (const FlowClass::Crossing& c : of(flow).crossings) {
        on_orbit_[c.orbit].free = std::max(0.0, on_orbit_[c.orbit].free - least * c.flows);
        on_orbit_[c.orbit].flows -= c.flows;
      }
      if (flow.rate == least) continue;  // its end stands, to the last digit
      flow.left = std::max(0.0, flow.left - flow.rate * (changed_ - flow.since));
      flow.since = changed_;
      flow.rate = least;
      flow.end = changed_ + flow.left / least;
    }
    open = std::move(still_open);
  }
}

}  // namespace epocast
