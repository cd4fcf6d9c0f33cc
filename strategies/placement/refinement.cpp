#include "strategies/placement/refinement.hpp"

#include <algorithm>
#include <utility>

#include "strategies/placement/mapping.hpp"

namespace epocast {
namespace {

constexpr std::size_t kMostCandidates = 16;  // for a swap; keeps it O(V log V) where many clusters start together

class Swaps {
 public:
  Swaps(const PlacementGraph& graph, std::span<const Ticks> transfer, const Clusters& clusters,
        std::span<const Ticks> top, int devices, Placement& placement)
      : graph_(graph),
        transfer_(transfer),
        clusters_(clusters),
        top_(top),
        devices_(static_cast<std::size_t>(devices)),
        placement_(placement),
        loads_(graph, top, devices),
        swapped_(clusters.size(), false) {
    for (std::uint32_t n = 0; n < graph.size(); ++n) loads_.add(n, placement[n], graph.time[n]);
    for (std::size_t n = 0; n < graph.size(); ++n) makespan_ = std::max(makespan_, top[n] + graph.time[n]);
  }

  std::size_t run() {
    std::vector<std::pair<Ticks, std::size_t>> by_weight, by_start;
    for (auto c = static_cast<std::size_t>(clusters_.primaries); c < clusters_.size(); ++c) {
      const Ticks work = work_of(c);
      if (work == 0) continue;
      by_weight.emplace_back(-work, c);
      by_start.emplace_back(top_[clusters_.nodes(c).front()], c);
    }
    std::sort(by_weight.begin(), by_weight.end());
    std::sort(by_start.begin(), by_start.end());
    std::size_t swaps = 0;
    for (const auto& [weight, c] : by_weight) {
      if (swapped_[c]) continue;
      const LevelSpan span = span_of(graph_, top_, clusters_.nodes(c), makespan_);
      loads_in_span_.assign(devices_, 0);
      loads_.sum(span.begin, span.end, loads_in_span_);
      Ticks best_gain = 0;
      std::size_t best = clusters_.size();
      auto at = std::lower_bound(by_start.begin(), by_start.end(), std::pair<Ticks, std::size_t>(span.begin, 0));
      for (std::size_t tried = 0; tried < kMostCandidates && at != by_start.end() && at->first < span.end; ++at) {
        const std::size_t other = at->second;
        if (swapped_[other] || device_of(other) == device_of(c)) continue;
        ++tried;
        const Ticks gain = gain_of(c, other);
        if (gain <= best_gain) continue;
        best_gain = gain;
        best = other;
      }
      if (best == clusters_.size()) continue;
      const int a = device_of(c), b = device_of(best);
      move(c, b);
      move(best, a);
      swapped_[c] = swapped_[best] = true;
      ++swaps;
    }
    return swaps;
  }

 private:
  Ticks work_of(std::size_t c) const {
    Ticks work = 0;
    for (const std::uint32_t n : clusters_.nodes(c)) work += graph_.time[n];
    return work;
  }
  /// Grouped nodes may lie elsewhere than the rest; a cluster is where its first node is.
  int device_of(std::size_t c) const { return placement_[clusters_.nodes(c).front()]; }

  void move(std::size_t c, int to) {
    for (const std::uint32_t n : clusters_.nodes(c)) {
      loads_.add(n, placement_[n], -graph_.time[n]);
      loads_.add(n, to, graph_.time[n]);
      placement_[n] = static_cast<std::int16_t>(to);
    }
  }

  /// What transfers would grow by if c went from device a to b while `other` goes the other way: edges between both
  /// stay between devices.
  Ticks extra_traffic(std::size_t c, std::size_t other, std::size_t a, std::size_t b) const {
    Ticks extra = 0;
    const auto count = [&](std::uint32_t v, Ticks time) {
      if (clusters_.of[v] == c || clusters_.of[v] == other) return;
      const auto d = static_cast<std::size_t>(placement_[v]);
      if (d == a) extra += time;
      if (d == b) extra -= time;
    };
    for (const std::uint32_t n : clusters_.nodes(c)) {
      for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) count(graph_.to[e], transfer_[e]);
      for (const std::uint32_t e : graph_.in_edges(n)) count(graph_.from[e], transfer_[e]);
    }
    return extra;
  }

  Ticks gain_of(std::size_t c, std::size_t other) const {
    const auto a = static_cast<std::size_t>(device_of(c)), b = static_cast<std::size_t>(device_of(other));
    const Ticks shift = work_of(c) - work_of(other);
    const Ticks before = std::max(loads_in_span_[a], loads_in_span_[b]);
    const Ticks after = std::max(loads_in_span_[a] - shift, loads_in_span_[b] + shift);
    return before - after - extra_traffic(c, other, a, b) - extra_traffic(other, c, b, a);
  }

  const PlacementGraph& graph_;
  std::span<const Ticks> transfer_;
  const Clusters& clusters_;
  std::span<const Ticks> top_;
  std::size_t devices_;
  Placement& placement_;
  LevelLoads loads_;
  std::vector<bool> swapped_;
  Ticks makespan_ = 0;
  std::vector<Ticks> loads_in_span_;
};

/// What the end of a replay waited for: from the last node back, each time to what came last, an arrival or the node
/// that had the device before.
std::vector<std::uint32_t> waiting_chain(const PlacementGraph& graph, const Placement& placement,
                                         const ReplayResult& result, std::span<const Ticks> transfer) {
  std::vector<std::uint32_t> before(graph.size());  // the node that ran before it on its device
  {
    std::vector<std::uint32_t> order;
    for (std::uint32_t n = 0; n < graph.size(); ++n)
      if (graph.time[n] > 0) order.push_back(n);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(result.start[a], a) < std::pair(result.start[b], b);
    });
    std::vector<std::int64_t> last;
    for (const std::uint32_t n : order) {
      const auto d = static_cast<std::size_t>(placement[n]);
      if (last.size() <= d) last.resize(d + 1, -1);
      before[n] = last[d] < 0 ? n : static_cast<std::uint32_t>(last[d]);
      last[d] = n;
    }
  }
  std::vector<std::uint32_t> chain;
  auto n = static_cast<std::uint32_t>(std::max_element(result.end.begin(), result.end.end()) - result.end.begin());
  while (true) {
    chain.push_back(n);
    std::uint32_t cause = n;
    Ticks latest = -1;
    for (const std::uint32_t e : graph.in_edges(n)) {
      const std::uint32_t u = graph.from[e];
      const Ticks arrival = result.end[u] + (placement[u] == placement[n] ? 0 : transfer[e]);
      if (arrival <= latest) continue;
      latest = arrival;
      cause = u;
    }
    if (graph.time[n] > 0 && before[n] != n && result.end[before[n]] > latest &&
        result.end[before[n]] == result.start[n])
      cause = before[n];
    if (cause == n) return chain;
    n = cause;
  }
}

}  // namespace

std::size_t swap_clusters(const PlacementGraph& graph, std::span<const Ticks> transfer, const Clusters& clusters,
                          std::span<const Ticks> top, int devices, Placement& placement) {
  return Swaps(graph, transfer, clusters, top, devices, placement).run();
}

std::size_t switch_nodes(const PlacementGraph& graph, std::span<const Ticks> transfer, Placement& placement) {
  const std::vector<Ticks> placed = placed_transfer_times(graph, transfer, placement);
  const Levels levels = compute_levels(graph, placed);
  const Ticks length = critical_path_length(levels);
  const std::vector<std::uint32_t> path = critical_path(graph, placed, std::vector<char>(graph.size(), 1), levels);
  const auto through = [&](std::uint32_t n, std::int16_t device) {
    Ticks top = 0, below = 0;
    for (const std::uint32_t e : graph.in_edges(n)) {
      const std::uint32_t u = graph.from[e];
      top = std::max(top, levels.top[u] + graph.time[u] + (placement[u] == device ? 0 : transfer[e]));
    }
    for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph.to[e];
      below = std::max(below, levels.bottom[v] + (placement[v] == device ? 0 : transfer[e]));
    }
    return top + graph.time[n] + below;
  };
  std::size_t moves = 0;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const std::uint32_t u = path[i], v = path[i + 1];
    if (placement[u] == placement[v]) continue;
    const Ticks of_u = graph.group[u] < 0 ? through(u, placement[v]) : length;
    const Ticks of_v = graph.group[v] < 0 ? through(v, placement[u]) : length;
    if (std::min(of_u, of_v) >= length) continue;
    if (of_u < of_v)
      placement[u] = placement[v];
    else
      placement[v] = placement[u];
    ++moves;
    ++i;  // levels of the next edge's ends are no longer right
  }
  return moves;
}

std::size_t improve_by_replay(const PlacementGraph& graph, const PlacementMachine& machine,
                              const ReplayOptions& options, double budget, Placement& placement) {
  if (machine.devices < 2 || graph.size() == 0) return 0;
  const std::vector<Ticks> transfer = transfer_times(graph, machine);
  const std::vector<std::vector<std::uint32_t>> members = group_members(graph);
  const auto put = [&](std::uint32_t n, std::int16_t device) {
    if (graph.group[n] < 0) placement[n] = device;
    if (graph.group[n] >= 0)
      for (const std::uint32_t m : members[static_cast<std::size_t>(graph.group[n])]) placement[m] = device;
  };
  const double cost = static_cast<double>(graph.size());
  ReplayResult now = replay(graph, machine, placement, options);
  budget -= cost;
  std::size_t moves = 0;
  bool improved = true;
  while (improved && budget >= cost) {
    improved = false;
    for (const std::uint32_t n : waiting_chain(graph, placement, now, transfer)) {
      const std::int16_t home = placement[n];
      for (std::int16_t d = 0; d < machine.devices && !improved && budget >= cost; ++d) {
        if (d == home) continue;
        put(n, d);
        ReplayResult then = replay(graph, machine, placement, options);
        budget -= cost;
        if (then.makespan < now.makespan) {
          now = std::move(then);
          improved = true;
          ++moves;
        } else {
          put(n, home);
        }
      }
      if (improved || budget < cost) break;
    }
  }
  return moves;
}

}  // namespace epocast
