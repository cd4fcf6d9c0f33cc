#include "strategies/placement/checkpointing.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace epocast {
namespace {

class Recomputation {
 public:
  Recomputation(const PlacementGraph& graph, const Segments& segments)
      : graph_(graph), segments_(segments), copy_(graph.size(), -1), nodes_(graph.size()) {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) nodes_[n] = n;
  }

  PlacementGraph run() {
    find_kept();
    find_triggers();
    for (std::size_t e = 0; e < graph_.edges(); ++e) {
      const std::uint32_t u = graph_.from[e], v = graph_.to[e];
      const bool again = graph_.bytes[e] > 0 && segments_.backward[v] >= 0 && is_recomputed(u) &&
                         segments_.backward[v] <= segments_.forward[u];
      edges_.push_back({again ? copy_of(u) : u, v, graph_.bytes[e]});
    }
    return sorted();
  }

 private:
  bool is_recomputed(std::uint32_t n) const {
    return segments_.forward[n] >= 0 && segments_.forward[n] + 1 < segments_.count && !kept_[n] &&
           graph_.lifetime[n] == Lifetime::normal && graph_.group[n] < 0;
  }

  void find_kept() {
    kept_.assign(graph_.size(), 0);
    for (std::size_t e = 0; e < graph_.edges(); ++e) {
      const std::int32_t from = segments_.forward[graph_.from[e]], to = segments_.forward[graph_.to[e]];
      if (from >= 0 && to >= 0 && from != to && graph_.bytes[e] > 0) kept_[graph_.from[e]] = 1;
    }
  }

  /// By segment: the last gradient node behind it that a gradient node of the segment, or before, reads.
  void find_triggers() {
    trigger_.assign(static_cast<std::size_t>(segments_.count), -1);
    for (std::size_t e = 0; e < graph_.edges(); ++e) {
      const std::int32_t from = segments_.backward[graph_.from[e]], to = segments_.backward[graph_.to[e]];
      if (from < 0 || to < 0 || graph_.bytes[e] <= 0) continue;
      for (std::int32_t s = to; s < from; ++s) {
        std::int64_t& trigger = trigger_[static_cast<std::size_t>(s)];
        trigger = std::max(trigger, static_cast<std::int64_t>(graph_.from[e]));
      }
    }
  }

  std::uint32_t copy_of(std::uint32_t first) {
    std::vector<std::uint32_t> open;
    const auto ask = [&](std::uint32_t n) {
      if (copy_[n] < 0) {
        copy_[n] = static_cast<std::int64_t>(nodes_.size());
        nodes_.push_back(n);
        open.push_back(n);
      }
      return static_cast<std::uint32_t>(copy_[n]);
    };
    const std::uint32_t out = ask(first);
    while (!open.empty()) {
      const std::uint32_t n = open.back();
      open.pop_back();
      const auto own = static_cast<std::uint32_t>(copy_[n]);
      const std::int64_t trigger = trigger_[static_cast<std::size_t>(segments_.forward[n])];
      if (trigger >= 0) edges_.push_back({static_cast<std::uint32_t>(trigger), own, 0});
      for (const std::uint32_t e : graph_.in_edges(n)) {
        const std::uint32_t u = graph_.from[e];
        const bool again = is_recomputed(u) && segments_.forward[u] == segments_.forward[n];
        edges_.push_back({again ? ask(u) : u, own, graph_.bytes[e]});
      }
    }
    return out;
  }

  /// Numbers nodes anew, so that edges go upwards; what could come first in the old order does.
  PlacementGraph sorted() const {
    std::vector<std::uint32_t> waits_for(nodes_.size(), 0), begin(nodes_.size() + 1, 0);
    for (const PlacementEdge& e : edges_) {
      ++waits_for[e.to];
      ++begin[e.from + 1];
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) begin[n + 1] += begin[n];
    std::vector<std::uint32_t> readers(edges_.size()), next(begin.begin(), begin.end() - 1);
    for (const PlacementEdge& e : edges_) readers[next[e.from]++] = e.to;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n)
      if (waits_for[n] == 0) ready.push(n);
    PlacementGraph out;
    out.groups = graph_.groups;
    std::vector<std::uint32_t> number(nodes_.size());
    while (!ready.empty()) {
      const std::uint32_t n = ready.top(), original = nodes_[n];
      ready.pop();
      number[n] = static_cast<std::uint32_t>(out.size());
      out.add_node(graph_.time[original], graph_.memory[original], graph_.lifetime[original], graph_.group[original]);
      for (std::uint32_t i = begin[n]; i < begin[n + 1]; ++i)
        if (--waits_for[readers[i]] == 0) ready.push(readers[i]);
    }
    std::vector<PlacementEdge> edges = edges_;
    for (PlacementEdge& e : edges) e = {number[e.from], number[e.to], e.bytes};
    out.set_edges(edges);
    return out;
  }

  const PlacementGraph& graph_;
  const Segments& segments_;
  std::vector<char> kept_;
  std::vector<std::int64_t> trigger_, copy_;
  std::vector<std::uint32_t> nodes_;  ///< by new node: what it is, or is a copy of
  std::vector<PlacementEdge> edges_;
};

}  // namespace

PlacementGraph with_recomputation(const PlacementGraph& graph, const Segments& segments) {
  return Recomputation(graph, segments).run();
}

}  // namespace epocast
