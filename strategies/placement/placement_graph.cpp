#include "strategies/placement/placement_graph.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace epocast {

Ticks PlacementGraph::total_time() const { return std::accumulate(time.begin(), time.end(), Ticks{0}); }

void PlacementGraph::add_node(Ticks node_time, double node_memory, Lifetime node_lifetime, std::int32_t node_group) {
  time.push_back(node_time);
  memory.push_back(node_memory);
  output.push_back(node_memory);
  lifetime.push_back(node_lifetime);
  group.push_back(node_group);
}

void PlacementGraph::set_edges(std::span<const PlacementEdge> list) {
  const std::size_t nodes = size();
  out_begin.assign(nodes + 1, 0);
  in_begin.assign(nodes + 1, 0);
  for (const PlacementEdge& e : list) {
    assert(e.from < e.to && e.to < nodes);
    ++out_begin[e.from + 1];
    ++in_begin[e.to + 1];
  }
  std::partial_sum(out_begin.begin(), out_begin.end(), out_begin.begin());
  std::partial_sum(in_begin.begin(), in_begin.end(), in_begin.begin());
  from.resize(list.size());
  to.resize(list.size());
  bytes.resize(list.size());
  in_edge.resize(list.size());
  std::vector<std::uint32_t> next(out_begin.begin(), out_begin.end() - 1);
  for (const PlacementEdge& e : list) {
    const std::uint32_t at = next[e.from]++;
    from[at] = e.from;
    to[at] = e.to;
    bytes[at] = e.bytes;
    output[e.from] = std::max(output[e.from], e.bytes);
  }
  next.assign(in_begin.begin(), in_begin.end() - 1);
  for (std::uint32_t e = 0; e < to.size(); ++e) in_edge[next[to[e]]++] = e;
}

std::vector<Ticks> transfer_times(const PlacementGraph& graph, const PlacementMachine& machine) {
  std::vector<Ticks> out(graph.edges());
  for (std::size_t e = 0; e < out.size(); ++e) out[e] = machine.transfer_time(graph.bytes[e]);
  return out;
}

std::vector<std::vector<std::uint32_t>> group_members(const PlacementGraph& graph) {
  std::vector<std::vector<std::uint32_t>> out(static_cast<std::size_t>(graph.groups));
  for (std::uint32_t n = 0; n < graph.size(); ++n)
    if (graph.group[n] >= 0) out[static_cast<std::size_t>(graph.group[n])].push_back(n);
  return out;
}

namespace {

/// Sets of nodes that must be together; the smallest member stands for its set.
class Together {
 public:
  explicit Together(std::size_t nodes) : parent_(nodes) { std::iota(parent_.begin(), parent_.end(), 0U); }
  std::uint32_t find(std::uint32_t n) {
    while (parent_[n] != n) n = parent_[n] = parent_[parent_[n]];
    return n;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    if (a > b) std::swap(a, b);
    parent_[b] = a;
  }

 private:
  std::vector<std::uint32_t> parent_;
};

/// Variables, what works in their memory, and the variables that such a node works in at the same time (slots).
std::vector<std::int32_t> groups_of(const OperatorGraph& graph, std::int32_t& count) {
  Together sets(graph.size());
  std::vector<bool> member(graph.size(), false);
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    if (graph.lifetime[n] != Lifetime::reference || graph.variable[n] < 0) continue;
    const auto variable = static_cast<std::uint32_t>(graph.variable[n]);
    sets.join(variable, n);
    member[n] = member[variable] = true;
    for (const std::uint32_t p : graph.producers(n)) {
      if (graph.operation_of(p) != "VariableV2") continue;
      sets.join(variable, p);
      member[p] = true;
    }
  }
  std::vector<std::int32_t> number(graph.size(), -1), out(graph.size(), -1);
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    if (!member[n]) continue;
    std::int32_t& of_set = number[sets.find(n)];
    if (of_set < 0) of_set = count++;
    out[n] = of_set;
  }
  return out;
}

}  // namespace

PlacementGraph placement_graph(const OperatorGraph& graph, std::span<const double> seconds) {
  assert(seconds.size() == graph.size());
  PlacementGraph out;
  const std::vector<std::int32_t> group = groups_of(graph, out.groups);
  std::vector<std::uint32_t> memory_of(graph.size());  // by node: whose memory its output is in
  std::vector<PlacementEdge> edges;
  edges.reserve(graph.edges() + graph.edges() / 4);
  for (std::uint32_t n = 0; n < graph.size(); ++n) {
    const bool is_run = runs(graph.phase[n]);
    const bool view = is_view(graph, n);
    memory_of[n] = view ? memory_of[graph.producer[graph.in_begin[n]]] : n;
    out.add_node(is_run ? to_ticks(seconds[n]) : 0, is_run && !view ? graph.output_bytes[n] : 0, graph.lifetime[n],
                 group[n]);
    for (std::uint32_t i = graph.in_begin[n]; i < graph.in_begin[n + 1]; ++i) {
      const std::uint32_t p = graph.producer[i];
      if (!is_run || !runs(graph.phase[p])) continue;
      const double bytes = graph.edge_bytes[i];
      const std::uint32_t owner = memory_of[p];
      const bool reads = !(view && i == graph.in_begin[n]);  // a view only waits for what it shows
      if (owner == p || bytes == 0 || !reads) {
        edges.push_back({p, n, reads ? bytes : 0});
      } else {
        edges.push_back({owner, n, bytes});
        edges.push_back({p, n, 0});
      }
    }
  }
  out.set_edges(edges);
  return out;
}

}  // namespace epocast
