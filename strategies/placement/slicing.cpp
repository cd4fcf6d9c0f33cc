#include "strategies/placement/slicing.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace epocast {
namespace {

class PathCollector {
 public:
  explicit PathCollector(const PlacementGraph& graph) : left_(graph.size(), 1) {
    clusters_.begin.push_back(0);
    clusters_.of.resize(graph.size());
    clusters_.node.reserve(graph.size());
  }
  void take(std::uint32_t n) {
    left_[n] = 0;
    clusters_.of[n] = static_cast<std::uint32_t>(clusters_.begin.size() - 1);
    clusters_.node.push_back(n);
  }
  void finish() { clusters_.begin.push_back(static_cast<std::uint32_t>(clusters_.node.size())); }
  const std::vector<char>& left() const { return left_; }
  Clusters done(int primaries) {
    clusters_.primaries = primaries;
    return std::move(clusters_);
  }

 private:
  Clusters clusters_;
  std::vector<char> left_;
};

}  // namespace

Clusters slice(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices) {
  PathCollector paths(graph);
  Levels levels;
  for (int k = 0; k < devices; ++k) {
    compute_levels(graph, transfer, paths.left(), levels);
    for (const std::uint32_t n : critical_path(graph, transfer, paths.left(), levels)) paths.take(n);
    paths.finish();
  }
  compute_levels(graph, transfer, paths.left(), levels);  // algorithm 1, line 7: after the Kth path too
  std::vector<std::pair<Ticks, std::uint32_t>> starts;    // heaviest first, of equal ones the first
  for (std::uint32_t n = 0; n < graph.size(); ++n)
    if (paths.left()[n]) starts.emplace_back(-levels.weighted(n), n);
  std::sort(starts.begin(), starts.end());
  for (const auto& [weight, start] : starts) {
    if (!paths.left()[start]) continue;
    std::uint32_t n = start;
    bool goes_on = true;
    while (goes_on) {
      paths.take(n);
      goes_on = false;
      Ticks heaviest = -1;
      const std::uint32_t end = graph.out_begin[n + 1];
      for (std::uint32_t e = graph.out_begin[n]; e < end; ++e) {
        const std::uint32_t v = graph.to[e];
        if (!paths.left()[v] || levels.weighted(v) <= heaviest) continue;
        heaviest = levels.weighted(v);
        n = v;
        goes_on = true;
      }
    }
    paths.finish();
  }
  return paths.done(devices);
}

Clusters linear_clustering(const PlacementGraph& graph, std::span<const Ticks> transfer) {
  PathCollector paths(graph);
  Levels levels = compute_levels(graph, transfer);
  std::vector<Ticks>& bottom = levels.bottom;
  const auto below = [&](std::uint32_t n) {
    Ticks out = 0;
    for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e)
      if (paths.left()[graph.to[e]]) out = std::max(out, transfer[e] + bottom[graph.to[e]]);
    return out + graph.time[n];
  };
  // Bottom levels only fall as nodes go, so an entry that is out of date lies too high and comes up too early.
  using Start = std::pair<Ticks, std::int64_t>;
  std::priority_queue<Start> starts;
  for (std::uint32_t n = 0; n < graph.size(); ++n) starts.emplace(bottom[n], -static_cast<std::int64_t>(n));
  std::priority_queue<std::uint32_t> changed;  // highest number first: readers before what they read
  std::vector<char> queued(graph.size(), 0);
  while (!starts.empty()) {
    const auto [level, negative] = starts.top();
    starts.pop();
    auto n = static_cast<std::uint32_t>(-negative);
    if (!paths.left()[n]) continue;
    if (level != bottom[n]) {
      starts.emplace(bottom[n], negative);
      continue;
    }
    std::vector<std::uint32_t> path;
    for (bool goes_on = true; goes_on;) {
      path.push_back(n);
      goes_on = false;
      Ticks longest = -1;
      const std::uint32_t begin = graph.out_begin[n], end = graph.out_begin[n + 1];
      for (std::uint32_t e = begin; e < end; ++e) {
        const std::uint32_t v = graph.to[e];
        if (!paths.left()[v] || transfer[e] + bottom[v] <= longest) continue;
        longest = transfer[e] + bottom[v];
        n = v;
        goes_on = true;
      }
    }
    for (const std::uint32_t p : path) paths.take(p);
    paths.finish();
    const auto ask_readers_of = [&](std::uint32_t v) {
      for (const std::uint32_t e : graph.in_edges(v)) {
        const std::uint32_t u = graph.from[e];
        if (!paths.left()[u] || queued[u]) continue;
        queued[u] = 1;
        changed.push(u);
      }
    };
    for (const std::uint32_t p : path) ask_readers_of(p);
    while (!changed.empty()) {
      const std::uint32_t u = changed.top();
      changed.pop();
      queued[u] = 0;
      const Ticks now = below(u);
      if (now == bottom[u]) continue;
      bottom[u] = now;
      ask_readers_of(u);
    }
  }
  return paths.done(0);
}

}  // namespace epocast
