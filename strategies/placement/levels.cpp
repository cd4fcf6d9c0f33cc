#include "strategies/placement/levels.hpp"

#include <algorithm>

namespace epocast {

void compute_levels(const PlacementGraph& graph, std::span<const Ticks> transfer, const std::vector<char>& left,
                    Levels& levels) {
  const std::size_t nodes = graph.size();
  levels.top.assign(nodes, 0);
  levels.bottom.assign(nodes, 0);
  for (std::size_t n = 0; n < nodes; ++n) {
    if (!left[n]) continue;
    const Ticks done = levels.top[n] + graph.time[n];
    for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph.to[e];
      if (left[v]) levels.top[v] = std::max(levels.top[v], done + transfer[e]);
    }
  }
  for (std::size_t n = nodes; n-- > 0;) {
    if (!left[n]) continue;
    Ticks below = 0;
    for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph.to[e];
      if (left[v]) below = std::max(below, transfer[e] + levels.bottom[v]);
    }
    levels.bottom[n] = below + graph.time[n];
  }
}

Levels compute_levels(const PlacementGraph& graph, std::span<const Ticks> transfer) {
  Levels levels;
  compute_levels(graph, transfer, std::vector<char>(graph.size(), 1), levels);
  return levels;
}

std::vector<Ticks> placed_transfer_times(const PlacementGraph& graph, std::span<const Ticks> transfer,
                                         const Placement& placement) {
  std::vector<Ticks> out(transfer.begin(), transfer.end());
  for (std::size_t e = 0; e < out.size(); ++e)
    if (placement[graph.from[e]] == placement[graph.to[e]]) out[e] = 0;
  return out;
}

Ticks critical_path_length(const Levels& levels) {
  return levels.bottom.empty() ? 0 : *std::max_element(levels.bottom.begin(), levels.bottom.end());
}

std::vector<std::uint32_t> critical_path(const PlacementGraph& graph, std::span<const Ticks> transfer,
                                         const std::vector<char>& left, const Levels& levels) {
  std::vector<std::uint32_t> path;
  std::size_t n = graph.size();
  for (std::size_t v = 0; v < graph.size(); ++v)
    if (left[v] && (n == graph.size() || levels.bottom[v] > levels.bottom[n])) n = v;
  while (n < graph.size()) {
    path.push_back(static_cast<std::uint32_t>(n));
    std::size_t next = graph.size();
    Ticks longest = -1;
    for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph.to[e];
      if (!left[v] || transfer[e] + levels.bottom[v] <= longest) continue;
      longest = transfer[e] + levels.bottom[v];
      next = v;
    }
    n = next;
  }
  return path;
}

}  // namespace epocast
