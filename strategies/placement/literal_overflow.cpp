#include "strategies/placement/literal_overflow.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "strategies/placement/memory_ledger.hpp"
#include "strategies/placement/overflow_rounds.hpp"

namespace epocast {
namespace {

constexpr std::size_t kMostTargetsTried = 4;  // that a node tries

/// One pass: times stay as a replay had them.
class LiteralPass {
 public:
  LiteralPass(const PlacementGraph& graph, const PlacementMachine& machine, const OverflowState& state,
              Placement& placement)
      : graph_(graph),
        transfer_(state.transfer),
        members_(state.members),
        limit_(machine.memory),
        placement_(placement),
        ledger_(graph, machine.devices, state.times, placement),
        by_ratio_(ledger_.devices()),
        by_cost_(ledger_.devices()),
        passed_(graph.size(), 0),
        moved_(graph.size(), 0) {}

  /// Gives the number of moves.
  std::size_t run() {
    std::vector<std::uint32_t> order(graph_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return ledger_.start(a) > ledger_.start(b); });
    std::size_t moves = 0, at = 0;
    for (std::size_t t = ledger_.moments(); t-- > 0;) {
      for (; at < order.size() && ledger_.start(order[at]) == t; ++at) {
        passed_[order[at]] = 1;
        offer(order[at], t);
      }
      for (std::size_t d = 0; d < ledger_.devices(); ++d)
        if (ledger_.at(d, t) > limit_) moves += relieve(d, t);
    }
    return moves;
  }

 private:
  struct Entry {
    double key;
    std::uint32_t node;
    friend bool operator>(const Entry& a, const Entry& b) {
      return std::pair(a.key, a.node) > std::pair(b.key, b.node);
    }
  };
  using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  std::size_t home(std::uint32_t n) const { return static_cast<std::size_t>(placement_[n]); }
  bool is_variable(std::uint32_t n) const { return graph_.lifetime[n] == Lifetime::residual && graph_.memory[n] > 0; }
  bool may_move(std::uint32_t n) const { return !moved_[n] && (graph_.group[n] < 0 || is_variable(n)); }

  /// The reader of `u` on n's device that runs last is n.
  bool reads_last(std::uint32_t n, std::uint32_t u) const {
    for (std::uint32_t e = graph_.out_begin[u]; e < graph_.out_begin[u + 1]; ++e) {
      const std::uint32_t v = graph_.to[e];
      if (v == n || graph_.bytes[e] <= 0 || placement_[v] != placement_[n]) continue;
      if (std::pair(ledger_.end(v), v) > std::pair(ledger_.end(n), n)) return false;
    }
    return true;
  }

  double potential(std::uint32_t n, std::size_t t) const {
    if (is_variable(n)) return graph_.memory[n];
    double bytes = ledger_.start(n) <= t && t <= ledger_.end(n) ? graph_.memory[n] : 0;
    std::uint32_t before = n;
    for (const std::uint32_t e : graph_.in_edges(n)) {
      const std::uint32_t u = graph_.from[e];
      if (u == before || graph_.bytes[e] <= 0 || ledger_.start(u) > t) continue;
      before = u;
      const bool is_here = placement_[u] == placement_[n];
      if ((is_here && graph_.lifetime[u] == Lifetime::residual) || !reads_last(n, u)) continue;
      bytes += is_here ? graph_.memory[u] : graph_.bytes[e];
    }
    return bytes;
  }

  /// Eq. 4.5.
  double cost(std::uint32_t n) const {
    Ticks out = graph_.time[n];
    for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e)
      if (placement_[graph_.to[e]] == placement_[n]) out += transfer_[e];
    for (const std::uint32_t e : graph_.in_edges(n))
      if (placement_[graph_.from[e]] == placement_[n]) out += transfer_[e];
    return static_cast<double>(out);
  }

  void offer(std::uint32_t n, std::size_t t) {
    if (!may_move(n) || !passed_[n]) return;
    const double bytes = potential(n, t);
    if (bytes <= 0) return;
    by_ratio_[home(n)].push({cost(n) / bytes, n});
    by_cost_[home(n)].push({cost(n), n});
  }

  /// The first node of a heap whose key is up to date; keys grow as time goes back. `key` gives infinity for a node
  /// that is of no use here.
  template <class Key>
  static bool settle(Heap& heap, Key key) {
    while (!heap.empty()) {
      const Entry top = heap.top();
      const double now = key(top.node);
      if (now <= top.key) return true;
      heap.pop();
      if (now < kUseless) heap.push({now, top.node});
    }
    return false;
  }

  std::size_t relieve(std::size_t d, std::size_t t) {
    std::size_t moves = 0;
    const auto is_here = [&](std::uint32_t n) { return home(n) == d && !moved_[n]; };
    while (ledger_.at(d, t) > limit_) {
      const double overflow = ledger_.at(d, t) - limit_;
      const bool any = settle(by_ratio_[d], [&](std::uint32_t n) {
        const double bytes = is_here(n) ? potential(n, t) : 0;
        return bytes > 0 ? cost(n) / bytes : kUseless;
      });
      if (!any) break;
      const bool any_enough = settle(
          by_cost_[d], [&](std::uint32_t n) { return is_here(n) && potential(n, t) >= overflow ? cost(n) : kUseless; });
      Heap& from = any_enough && by_cost_[d].top().key < cost(by_ratio_[d].top().node) ? by_cost_[d] : by_ratio_[d];
      const std::uint32_t n = from.top().node;
      from.pop();
      if (try_to_move(n, d, t)) ++moves;
    }
    return moves;
  }

  bool try_to_move(std::uint32_t n, std::size_t d, std::size_t t) {
    const double bytes = potential(n, t);
    set_.assign(1, n);
    if (graph_.group[n] >= 0) set_ = members_[static_cast<std::size_t>(graph_.group[n])];
    traffic_.assign(ledger_.devices(), 0);
    for (const std::uint32_t m : set_) {
      for (std::uint32_t e = graph_.out_begin[m]; e < graph_.out_begin[m + 1]; ++e)
        traffic_[home(graph_.to[e])] += graph_.bytes[e];
      for (const std::uint32_t e : graph_.in_edges(m)) traffic_[home(graph_.from[e])] += graph_.bytes[e];
    }
    targets_.clear();
    for (std::size_t to = 0; to < ledger_.devices(); ++to)
      if (to != d && ledger_.at(to, t) + bytes <= limit_) targets_.emplace_back(-traffic_[to], ledger_.at(to, t), to);
    std::sort(targets_.begin(), targets_.end());
    if (targets_.size() > kMostTargetsTried) targets_.resize(kMostTargetsTried);
    for (const auto& [minus_traffic, held, to] : targets_) {
      const double before = ledger_.most(to);
      ledger_.move(set_, static_cast<std::int16_t>(to));
      if (ledger_.most(to) <= std::max(limit_, before)) {
        for (const std::uint32_t m : set_) moved_[m] = 1;
        // Others have become the last readers of what it read.
        for (const std::uint32_t m : set_)
          for (const std::uint32_t e : graph_.in_edges(m)) offer_readers(graph_.from[e], d, t);
        return true;
      }
      ledger_.move(set_, static_cast<std::int16_t>(d));
    }
    return false;
  }

  void offer_readers(std::uint32_t u, std::size_t d, std::size_t t) {
    for (std::uint32_t e = graph_.out_begin[u]; e < graph_.out_begin[u + 1]; ++e) {
      const std::uint32_t v = graph_.to[e];
      if (graph_.bytes[e] > 0 && home(v) == d && reads_last(v, u)) offer(v, t);
    }
  }

  static constexpr double kUseless = 1e300;

  const PlacementGraph& graph_;
  std::span<const Ticks> transfer_;
  std::span<const std::vector<std::uint32_t>> members_;
  double limit_;
  Placement& placement_;
  MemoryLedger ledger_;
  std::vector<Heap> by_ratio_, by_cost_;  ///< by device
  std::vector<char> passed_, moved_;
  std::vector<std::uint32_t> set_;
  std::vector<double> traffic_;
  std::vector<std::tuple<double, double, std::size_t>> targets_;
};

}  // namespace

OverflowResult resolve_overflow_as_written(const PlacementGraph& graph, const PlacementMachine& machine,
                                           const ReplayOptions& options, Placement& placement, int most_passes) {
  double lowest = std::numeric_limits<double>::infinity();
  return overflow_rounds(graph, machine, options, placement, most_passes, [&](const OverflowState& state) {
    if (state.peak >= lowest) return false;
    lowest = state.peak;
    return LiteralPass(graph, machine, state, placement).run() > 0;
  });
}

}  // namespace epocast
