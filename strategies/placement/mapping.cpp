#include "strategies/placement/mapping.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace epocast {

LevelLoads::LevelLoads(const PlacementGraph& graph, std::span<const Ticks> top, int devices)
    : devices_(static_cast<std::size_t>(devices)), level_(top.begin(), top.end()), of_(graph.size()) {
  std::sort(level_.begin(), level_.end());
  level_.erase(std::unique(level_.begin(), level_.end()), level_.end());
  total_.assign(level_.size() + 1, 0);
  for (std::size_t n = 0; n < graph.size(); ++n) {
    of_[n] = static_cast<std::uint32_t>(rank(top[n]));
    total_[of_[n] + 1] += graph.time[n];
  }
  std::partial_sum(total_.begin(), total_.end(), total_.begin());
  tree_.assign((level_.size() + 1) * devices_, 0);
}

std::size_t LevelLoads::rank(Ticks level) const {
  return static_cast<std::size_t>(std::lower_bound(level_.begin(), level_.end(), level) - level_.begin());
}

void LevelLoads::add(std::uint32_t node, int device, Ticks work) {
  if (work == 0) return;
  for (std::size_t i = of_[node] + 1; i <= level_.size(); i += i & (~i + 1))
    tree_[i * devices_ + static_cast<std::size_t>(device)] += work;
}

void LevelLoads::prefix(std::size_t levels, Ticks sign, std::vector<Ticks>& loads) const {
  for (std::size_t i = levels; i > 0; i -= i & (~i + 1)) {
    const Ticks* row = tree_.data() + i * devices_;
    for (std::size_t d = 0; d < devices_; ++d) loads[d] += sign * row[d];
  }
}

void LevelLoads::sum(Ticks begin, Ticks end, std::vector<Ticks>& loads) const {
  if (end <= begin) return;
  prefix(rank(end), 1, loads);
  prefix(rank(begin), -1, loads);
}

Ticks LevelLoads::total(Ticks begin, Ticks end) const {
  return end <= begin ? 0 : total_[rank(end)] - total_[rank(begin)];
}

LevelSpan span_of(const PlacementGraph& graph, std::span<const Ticks> top, std::span<const std::uint32_t> cluster,
                  Ticks makespan) {
  LevelSpan out{0, makespan};
  for (const std::uint32_t e : graph.in_edges(cluster.front()))
    out.begin = std::max(out.begin, top[graph.from[e]] + graph.time[graph.from[e]]);
  const std::uint32_t last = cluster.back();
  for (std::uint32_t e = graph.out_begin[last]; e < graph.out_begin[last + 1]; ++e)
    out.end = std::min(out.end, top[graph.to[e]]);
  return out;
}

namespace {

std::size_t argmax(const std::vector<Ticks>& values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

class Mapping {
 public:
  Mapping(const PlacementGraph& graph, std::span<const Ticks> transfer, const Clusters& clusters,
          std::span<const Ticks> top, int devices)
      : graph_(graph),
        transfer_(transfer),
        clusters_(clusters),
        top_(top),
        devices_(static_cast<std::size_t>(devices)),
        loads_(graph, top, devices),
        device_(graph.size(), -1) {
    traffic_.with.resize(devices_);
    for (std::size_t n = 0; n < graph.size(); ++n) makespan_ = std::max(makespan_, top[n] + graph.time[n]);
    for (int k = 0; k < clusters.primaries; ++k) put(static_cast<std::size_t>(k), k);
  }

  Placement run(MappingCounts* counts) {
    std::vector<std::pair<Ticks, std::size_t>> rest;  // heaviest first
    for (auto c = static_cast<std::size_t>(clusters_.primaries); c < clusters_.size(); ++c) {
      Ticks work = 0;
      for (const std::uint32_t n : clusters_.nodes(c)) work += graph_.time[n];
      if (work > 0 && joins_at_once(c)) {
        if (counts != nullptr) ++counts->merged_first;
      } else {
        rest.emplace_back(-work, c);
      }
    }
    std::sort(rest.begin(), rest.end());
    for (const auto& [minus_work, c] : rest) minus_work == 0 ? follow(c) : balance(c);
    if (counts != nullptr) counts->balanced = rest.size();
    return std::move(device_);
  }

 private:
  void put(std::size_t c, int device) {
    for (const std::uint32_t n : clusters_.nodes(c)) {
      device_[n] = static_cast<std::int16_t>(device);
      loads_.add(n, device, graph_.time[n]);
    }
  }

  const PlacementTraffic& traffic_of(std::size_t c) {
    std::fill(traffic_.with.begin(), traffic_.with.end(), 0);
    traffic_.placed = traffic_.unplaced = 0;
    for (const std::uint32_t n : clusters_.nodes(c))
      add_traffic(
          graph_, transfer_, device_, n, [&](std::uint32_t v) { return clusters_.of[v] == c; }, traffic_);
    return traffic_;
  }

  bool joins_at_once(std::size_t c) {
    const PlacementTraffic& traffic = traffic_of(c);
    if (traffic.placed == 0) return false;
    const LevelSpan span = span_of(graph_, top_, clusters_.nodes(c), makespan_);
    Ticks potential = loads_.total(span.begin, span.end);
    for (const std::uint32_t n : clusters_.nodes(c))
      if (top_[n] >= span.begin && top_[n] < span.end) potential -= graph_.time[n];
    if (traffic.placed + traffic.unplaced <= potential) return false;
    put(c, static_cast<int>(argmax(traffic.with)));
    return true;
  }

  void balance(std::size_t c) {
    const PlacementTraffic& traffic = traffic_of(c);
    const LevelSpan span = span_of(graph_, top_, clusters_.nodes(c), makespan_);
    std::vector<Ticks>& cost = cost_;
    cost.assign(devices_, 0);
    loads_.sum(span.begin, span.end, cost);
    for (std::size_t d = 0; d < devices_; ++d) cost[d] += traffic.placed - traffic.with[d];
    std::size_t best = 0;
    for (std::size_t d = 1; d < devices_; ++d)
      if (std::tuple(cost[d], -traffic.with[d]) < std::tuple(cost[best], -traffic.with[best])) best = d;
    put(c, static_cast<int>(best));
  }

  void follow(std::size_t c) { put(c, static_cast<int>(argmax(traffic_of(c).with))); }

  const PlacementGraph& graph_;
  std::span<const Ticks> transfer_;
  const Clusters& clusters_;
  std::span<const Ticks> top_;
  std::size_t devices_;
  Ticks makespan_ = 0;
  LevelLoads loads_;
  Placement device_;
  PlacementTraffic traffic_;
  std::vector<Ticks> cost_;
};

}  // namespace

Placement map_clusters(const PlacementGraph& graph, std::span<const Ticks> transfer, const Clusters& clusters,
                       std::span<const Ticks> top, int devices, MappingCounts* counts) {
  return Mapping(graph, transfer, clusters, top, devices).run(counts);
}

Placement guided_load_balancing(const PlacementGraph& graph, const Clusters& clusters, std::span<const Ticks> top,
                                int devices) {
  std::vector<std::tuple<Ticks, Ticks, std::size_t>> order;
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    if (clusters.nodes(c).empty()) continue;
    Ticks work = 0;
    for (const std::uint32_t n : clusters.nodes(c)) work += graph.time[n];
    order.emplace_back(top[clusters.nodes(c).front()], -work, c);
  }
  std::sort(order.begin(), order.end());
  std::vector<Ticks> load(static_cast<std::size_t>(devices), 0);
  Placement out(graph.size(), 0);
  for (const auto& [start, minus_work, c] : order) {
    const auto least = std::min_element(load.begin(), load.end()) - load.begin();
    load[static_cast<std::size_t>(least)] -= minus_work;
    for (const std::uint32_t n : clusters.nodes(c)) out[n] = static_cast<std::int16_t>(least);
  }
  return out;
}

void unite_groups(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices, Placement& placement) {
  const auto width = static_cast<std::size_t>(devices);
  std::vector<Ticks> weight(static_cast<std::size_t>(graph.groups) * width, 0);
  const auto row = [&](std::uint32_t n) { return weight.data() + static_cast<std::size_t>(graph.group[n]) * width; };
  for (std::uint32_t n = 0; n < graph.size(); ++n)
    if (graph.group[n] >= 0) row(n)[placement[n]] += graph.time[n];
  for (std::uint32_t e = 0; e < graph.edges(); ++e) {
    const std::uint32_t u = graph.from[e], v = graph.to[e];
    if (graph.group[u] == graph.group[v]) continue;
    if (graph.group[u] >= 0) row(u)[placement[v]] += transfer[e];
    if (graph.group[v] >= 0) row(v)[placement[u]] += transfer[e];
  }
  for (std::uint32_t n = 0; n < graph.size(); ++n)
    if (graph.group[n] >= 0)
      placement[n] = static_cast<std::int16_t>(std::max_element(row(n), row(n) + width) - row(n));
}

}  // namespace epocast
