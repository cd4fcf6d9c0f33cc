#include "sim/disturbed_links.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace epocast {
namespace {

/// First links of the routes from `host` to the others, and last ones of those back.
std::set<int> links_of(SimEngine& engine, int host, const std::vector<int>& hosts) {
  std::set<int> links;
  for (const int other : hosts) {
    if (other == host) continue;
    links.insert(engine.route(host, other).bottlenecks().front());
    links.insert(engine.route(other, host).bottlenecks().back());
  }
  return links;
}

}  // namespace

DisturbedLinks::DisturbedLinks(SimEngine& engine, const std::vector<Disturbance>& disturbances,
                               const std::vector<int>& hosts, double elapsed)
    : engine_(engine) {
  for (const auto& [device, window] : disturbances)
    for (const int link : links_of(engine, hosts[static_cast<std::size_t>(device)], hosts))
      windows_[link][device].push_back(window);
  if (windows_.empty()) return;
  const double offset = elapsed - engine.now();
  const double next = apply(elapsed);
  engine_.set_background(next - offset, [this, offset](double now) {
    // What is due now may be a rounding error away.
    return apply(now + offset + SimEngine::tolerance(now + offset)) - offset;
  });
}

DisturbedLinks::~DisturbedLinks() {
  if (windows_.empty()) return;
  engine_.set_background(std::numeric_limits<double>::infinity(), nullptr);
  for (const auto& [link, windows] : windows_) engine_.set_current_bandwidth(link, engine_.link_bandwidth(link));
}

double DisturbedLinks::apply(double date) {
  double next = std::numeric_limits<double>::infinity();
  for (const auto& [link, by_device] : windows_) {
    double factor = 1;
    for (const auto& [device, windows] : by_device) {
      double own = 1;
      for (const SlowWindow& window : windows) {
        own *= window.factor_at(date);
        next = std::min(next, window.next_change(date));
      }
      factor = std::max(factor, own);  // one link of several devices is slow once
    }
    engine_.set_current_bandwidth(link, engine_.link_bandwidth(link) / factor);
  }
  return next;
}

}  // namespace epocast
