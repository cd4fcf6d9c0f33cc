#include "sim/disturbed_links.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace epocast {
namespace {

/// The links of one device, found by the routes to and from all others, whoever takes part.
class OwnLinks {
 public:
  OwnLinks(SimEngine& engine, const Cluster& cluster, const std::vector<int>& hosts, std::size_t device)
      : engine_(engine), cluster_(cluster), hosts_(hosts), device_(device) {}

  std::set<int> find() {
    std::set<int> links;
    for (const bool out : {true, false}) {
      std::optional<std::set<int>> behind;  // its own link, on all ways to other nodes
      std::size_t far = 0;
      for (std::size_t other = 0; other < hosts_.size(); ++other) {
        if (hosts_[other] == hosts_[device_]) continue;
        std::vector<int> way = route(device_, other, out);
        if (!out) std::ranges::reverse(way);
        links.insert(way.front());
        if (of(other).node == of(device_).node || !of(other).trains) continue;
        // The other half is as much the other's; a network of two nodes cannot tell by who sends what there.
        const std::set<int> near(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(way.size() / 2));
        if (behind)
          std::erase_if(*behind, [&](int link) { return !near.contains(link); });
        else
          behind = near;
        far = other;
      }
      for (const int link : behind.value_or(std::set<int>{}))
        if (is_of_node(link, far, out)) links.insert(link);
    }
    return links;
  }

 private:
  const std::vector<int>& route(std::size_t near, std::size_t far, bool out) {
    return (out ? engine_.route(hosts_[near], hosts_[far]) : engine_.route(hosts_[far], hosts_[near])).links;
  }

  /// Whether nobody of another node reaches `far` over the link, or is reached: it is the node's, not the network's.
  bool is_of_node(int link, std::size_t far, bool out) {
    for (std::size_t d = 0; d < hosts_.size(); ++d) {
      if (of(d).node == of(device_).node || hosts_[d] == hosts_[far]) continue;
      const std::vector<int>& way = route(d, far, out);
      if (std::ranges::find(way, link) != way.end()) return false;
    }
    return true;
  }

  const Device& of(std::size_t device) const { return cluster_.devices[device]; }

  SimEngine& engine_;
  const Cluster& cluster_;
  const std::vector<int>& hosts_;
  std::size_t device_;
};

}  // namespace

DisturbedLinks::DisturbedLinks(SimEngine& engine, const std::vector<Disturbance>& disturbances, const Cluster& cluster,
                               const std::vector<int>& hosts, double elapsed)
    : engine_(engine) {
  std::map<DeviceId, std::set<int>> links;
  for (const auto& [device, window] : disturbances) {
    const auto [known, is_new] = links.try_emplace(device);
    if (is_new) known->second = OwnLinks(engine, cluster, hosts, static_cast<std::size_t>(device)).find();
    for (const int link : known->second) windows_[link][device].push_back(window);
  }
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

/// How many times less a link carries at a date, and when that may change.
DisturbedLinks::State DisturbedLinks::state(const WindowsByDevice& by_device, double date) {
  State out;
  for (const auto& [device, windows] : by_device) {
    double own = 1;
    for (const SlowWindow& window : windows) {
      own *= window.factor_at(date);
      out.until = std::min(out.until, window.next_change(date));
    }
    out.factor = std::max(out.factor, own);  // one link of several devices is slow once
  }
  return out;
}

double DisturbedLinks::apply(double date) {
  double next = std::numeric_limits<double>::infinity();
  for (const auto& [link, windows] : windows_) {
    const auto [factor, until] = state(windows, date);
    next = std::min(next, until);
    engine_.set_current_bandwidth(link, engine_.link_bandwidth(link) / factor);
  }
  return next;
}

double DisturbedLinks::mean_bandwidth(int link, double from, double until) const {
  const auto found = windows_.find(link);
  if (found == windows_.end()) return engine_.link_bandwidth(link);
  if (until <= from) return engine_.link_bandwidth(link) / state(found->second, from).factor;
  double share = 0;
  for (double date = from; date < until;) {
    const auto [factor, next] = state(found->second, date);
    share += (std::min(next, until) - date) / factor;
    date = next;
  }
  return engine_.link_bandwidth(link) * share / (until - from);
}

}  // namespace epocast
