#include "strategies/placement/list_placement.hpp"

#include <algorithm>
#include <numeric>

#include "strategies/placement/levels.hpp"
#include "strategies/placement/mapping.hpp"

namespace epocast {

Placement round_robin(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices) {
  Placement out(graph.size());
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = static_cast<std::int16_t>(n % static_cast<std::size_t>(devices));
  unite_groups(graph, transfer, devices, out);
  return out;
}

namespace {

constexpr int kMostGaps = 64;

/// When a device is busy, ascending.
class BusyTimes {
 public:
  Ticks earliest_start(Ticks ready, Ticks time) const {
    auto next =
        std::upper_bound(busy_.begin(), busy_.end(), ready, [](Ticks t, const LevelSpan& s) { return t < s.end; });
    for (int i = 0; i < kMostGaps && next != busy_.end(); ++i, ++next) {
      if (ready + time <= next->begin) return ready;
      ready = std::max(ready, next->end);
    }
    return next == busy_.end() ? ready : std::max(ready, busy_.back().end);
  }
  void take(Ticks begin, Ticks end) {
    const auto at =
        std::upper_bound(busy_.begin(), busy_.end(), begin, [](Ticks t, const LevelSpan& s) { return t < s.begin; });
    if (at != busy_.begin() && std::prev(at)->end == begin && (at == busy_.end() || at->begin > end))
      std::prev(at)->end = end;
    else
      busy_.insert(at, {begin, end});
  }

 private:
  std::vector<LevelSpan> busy_;
};

class Heft {
 public:
  Heft(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices)
      : graph_(graph),
        transfer_(transfer),
        devices_(devices),
        busy_(static_cast<std::size_t>(devices)),
        group_device_(static_cast<std::size_t>(graph.groups), -1),
        device_(graph.size(), -1),
        end_(graph.size(), 0) {}

  Placement run() {
    const Levels levels = compute_levels(graph_, transfer_);
    std::vector<std::uint32_t> order(graph_.size());
    std::iota(order.begin(), order.end(), 0U);
    // Equal levels only between nodes without time: the topological order stands.
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return levels.bottom[a] > levels.bottom[b]; });
    for (const std::uint32_t n : order)
      if (!follows_reader(n)) place(n);
    for (std::uint32_t n = 0; n < graph_.size(); ++n)
      if (device_[n] < 0) settle(n, graph_.group[n] >= 0 && group_device(n) >= 0 ? group_device(n) : 0);
    return std::move(device_);
  }

 private:
  std::int16_t& group_device(std::uint32_t n) { return group_device_[static_cast<std::size_t>(graph_.group[n])]; }
  bool follows_reader(std::uint32_t n) const {
    return graph_.time[n] == 0 && graph_.in_begin[n] == graph_.in_begin[n + 1];
  }
  void settle(std::uint32_t n, std::int16_t device) {
    device_[n] = device;
    if (graph_.group[n] >= 0) group_device(n) = device;
  }
  std::int16_t device_so_far(std::uint32_t n) {
    return device_[n] >= 0 || graph_.group[n] < 0 ? device_[n] : group_device(n);
  }

  void place(std::uint32_t n) {
    std::int16_t best = -1;
    Ticks best_start = 0;
    const std::int16_t forced = device_so_far(n);
    for (std::int16_t d = forced < 0 ? std::int16_t{0} : forced; d < (forced < 0 ? devices_ : forced + 1); ++d) {
      Ticks ready = 0;
      for (const std::uint32_t e : graph_.in_edges(n)) {
        const std::uint32_t u = graph_.from[e];
        const std::int16_t at = device_so_far(u);
        ready = std::max(ready, end_[u] + (at < 0 || at == d ? 0 : transfer_[e]));
      }
      const Ticks start =
          graph_.time[n] == 0 ? ready : busy_[static_cast<std::size_t>(d)].earliest_start(ready, graph_.time[n]);
      if (best >= 0 && start >= best_start) continue;
      best = d;
      best_start = start;
    }
    settle(n, best);
    end_[n] = best_start + graph_.time[n];
    if (graph_.time[n] > 0) busy_[static_cast<std::size_t>(best)].take(best_start, end_[n]);
    for (const std::uint32_t e : graph_.in_edges(n))
      if (device_so_far(graph_.from[e]) < 0) settle(graph_.from[e], best);
  }

  const PlacementGraph& graph_;
  std::span<const Ticks> transfer_;
  int devices_;
  std::vector<BusyTimes> busy_;
  std::vector<std::int16_t> group_device_;
  Placement device_;
  std::vector<Ticks> end_;
};

}  // namespace

Placement heft(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices) {
  Placement out = Heft(graph, transfer, devices).run();
  // A member of a group that was placed before the rest knew may lie elsewhere.
  unite_groups(graph, transfer, devices, out);
  return out;
}

namespace {

class FillInTurn {
 public:
  FillInTurn(const PlacementGraph& graph, int devices, double share)
      : graph_(graph), devices_(devices), held_(static_cast<std::size_t>(devices), 0), device_(graph.size(), -1) {
    first_reader_.assign(graph.size(), kNone);
    lasting_.assign(graph.size(), 0);
    group_bytes_.assign(static_cast<std::size_t>(graph.groups), 0);
    group_device_.assign(static_cast<std::size_t>(graph.groups), -1);
    for (std::uint32_t n = 0; n < graph.size(); ++n) {
      if (graph.lifetime[n] == Lifetime::residual && graph.group[n] >= 0)
        group_bytes_[static_cast<std::size_t>(graph.group[n])] += graph.memory[n];
      std::uint32_t last = 0;
      for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e) {
        if (graph.bytes[e] <= 0) continue;
        first_reader_[n] = std::min(first_reader_[n], graph.to[e]);
        last = std::max(last, graph.to[e]);
      }
      // Read once more after many others have run: kept for a backward pass.
      if (graph.lifetime[n] == Lifetime::normal && first_reader_[n] != kNone && last > first_reader_[n] + kSoon)
        lasting_[n] = graph.memory[n];
    }
    const double all = std::accumulate(lasting_.begin(), lasting_.end(), 0.0) +
                       std::accumulate(group_bytes_.begin(), group_bytes_.end(), 0.0);
    share_ = share * all / devices;
  }

  Placement run() {
    for (std::uint32_t n = 0; n < graph_.size(); ++n)
      if (!follows_reader(n)) place(n);
    for (std::uint32_t n = 0; n < graph_.size(); ++n)
      if (device_[n] < 0) device_[n] = std::max<std::int16_t>(0, device_so_far(n));
    return std::move(device_);
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::uint32_t kSoon = 200;  // nodes: more than an operation's gradient has

  bool follows_reader(std::uint32_t n) const { return graph_.in_begin[n] == graph_.in_begin[n + 1]; }
  std::int16_t device_so_far(std::uint32_t n) const {
    return device_[n] >= 0 || graph_.group[n] < 0 ? device_[n]
                                                  : group_device_[static_cast<std::size_t>(graph_.group[n])];
  }

  void place(std::uint32_t n) {
    std::int16_t device = device_so_far(n);
    if (device < 0) {
      std::vector<double>& kept = scratch_;
      kept.assign(static_cast<std::size_t>(devices_), 0);
      double most_fresh = 0, most_kept = 0, comes_along = lasting_[n];
      std::int16_t fresh = -1, lies = -1;
      for (const std::uint32_t e : graph_.in_edges(n)) {
        const std::uint32_t u = graph_.from[e];
        const std::int16_t at = device_so_far(u);
        if (at < 0) {
          if (graph_.group[u] >= 0) comes_along += group_bytes_[static_cast<std::size_t>(graph_.group[u])];
          continue;
        }
        const bool again = graph_.bytes[e] > 0 && first_reader_[u] + kSoon < n;
        if (again) {
          kept[static_cast<std::size_t>(at)] += graph_.bytes[e];
          if (kept[static_cast<std::size_t>(at)] > most_kept) most_kept = kept[static_cast<std::size_t>(lies = at)];
        } else if (fresh < 0 || graph_.bytes[e] > most_fresh) {
          most_fresh = graph_.bytes[e];
          fresh = at;
        }
      }
      device = most_kept > 0 ? lies : fresh >= 0 ? fresh : turn_;
      const auto full = [&](std::int16_t d) { return held_[static_cast<std::size_t>(d)] + comes_along > share_; };
      if (comes_along > 0 && most_kept == 0 && full(device)) {
        while (turn_ + 1 < devices_ && full(turn_)) ++turn_;
        device = turn_;
      }
    }
    device_[n] = device;
    held_[static_cast<std::size_t>(device)] += lasting_[n];
    bring(n, device);
    for (const std::uint32_t e : graph_.in_edges(n)) {
      const std::uint32_t u = graph_.from[e];
      if (device_so_far(u) >= 0) continue;
      device_[u] = device;
      bring(u, device);
    }
  }

  void bring(std::uint32_t n, std::int16_t device) {
    if (graph_.group[n] < 0) return;
    const auto g = static_cast<std::size_t>(graph_.group[n]);
    if (group_device_[g] >= 0) return;
    group_device_[g] = device;
    held_[static_cast<std::size_t>(device)] += group_bytes_[g];
  }

  const PlacementGraph& graph_;
  int devices_;
  std::vector<std::uint32_t> first_reader_;
  std::vector<double> lasting_;      ///< by node: bytes that stay for a later part of the graph
  std::vector<double> group_bytes_;  ///< of variables
  std::vector<std::int16_t> group_device_;
  std::vector<double> held_;
  double share_ = 0;
  std::int16_t turn_ = 0;
  std::vector<double> scratch_;
  Placement device_;
};

}  // namespace

Placement fill_in_turn(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices, double share) {
  Placement out = FillInTurn(graph, devices, share).run();
  unite_groups(graph, transfer, devices, out);
  return out;
}

}  // namespace epocast
