#include "experiments/place/graph_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "sim/config.hpp"
#include "sim/text.hpp"

namespace epocast {
namespace {

constexpr std::size_t kMostNamesInHint = 2000;  // the nearest of more names takes too long to find
constexpr std::size_t kMostNodesOfCycle = 12;   // that a message names

std::string shown(const std::string& name) { return abridged(printable(name)); }

/// A topological order that takes the lowest number it can; shorter than the graph if there is a cycle.
std::vector<std::uint32_t> topological_order(const std::vector<std::vector<std::uint32_t>>& readers) {
  std::vector<std::uint32_t> waits_for(readers.size(), 0), order;
  for (const auto& list : readers)
    for (const std::uint32_t v : list) ++waits_for[v];
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t n = 0; n < readers.size(); ++n)
    if (waits_for[n] == 0) ready.push(n);
  while (!ready.empty()) {
    const std::uint32_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const std::uint32_t v : readers[n])
      if (--waits_for[v] == 0) ready.push(v);
  }
  return order;
}

/// Nodes of a cycle in the order of its edges. REQUIRES one among the nodes that are not `done`.
std::vector<std::uint32_t> find_cycle(const std::vector<std::vector<std::uint32_t>>& readers,
                                      const std::vector<char>& done) {
  // Every node that is left waits for another one that is left: following what it waits for ends in a cycle.
  std::vector<std::uint32_t> waits_for(readers.size(), 0);
  std::uint32_t n = 0;
  for (std::uint32_t u = 0; u < readers.size(); ++u)
    for (const std::uint32_t v : readers[u])
      if (!done[u] && !done[v]) waits_for[n = v] = u;
  std::vector<char> seen(readers.size(), 0);
  while (!seen[n]) {
    seen[n] = 1;
    n = waits_for[n];
  }
  std::vector<std::uint32_t> cycle{n};
  for (std::uint32_t v = waits_for[n]; v != n; v = waits_for[v]) cycle.push_back(v);
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

}  // namespace

void GraphDraft::add(DraftNode node) {
  const auto [found, is_new] = index_.emplace(node.name, static_cast<std::uint32_t>(nodes_.size()));
  if (!is_new)
    throw ConfigError(node.where, "node",
                      fmt::format("there is a node '{}' already, in line {}; names must differ", shown(node.name),
                                  nodes_[found->second].where.line));
  nodes_.push_back(std::move(node));
}

void GraphDraft::add_edge(std::string_view from, std::string_view to, double bytes, const Location& where) {
  edges_.push_back({std::string(from), std::string(to), bytes, where});
}

std::uint32_t GraphDraft::find(const std::string& name, const Location& where, const char* role) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return found->second;
  std::vector<std::string> names;
  if (nodes_.size() <= kMostNamesInHint)
    for (const DraftNode& node : nodes_) names.push_back(node.name);
  throw ConfigError(where, role,
                    fmt::format("there is no node '{}'{}", shown(name), names.empty() ? "" : name_hint(name, names)));
}

NamedGraph GraphDraft::finish(std::string name) const {
  if (nodes_.empty()) throw ConfigError(name + ": there are no nodes");
  std::vector<std::vector<std::uint32_t>> readers(nodes_.size());
  std::vector<PlacementEdge> edges;
  edges.reserve(edges_.size());
  for (const DraftEdge& e : edges_) {
    edges.push_back({find(e.from, e.where, "edge"), find(e.to, e.where, "edge"), e.bytes});
    readers[edges.back().from].push_back(edges.back().to);
  }
  const std::vector<std::uint32_t> order = topological_order(readers);
  if (order.size() < nodes_.size()) {
    std::vector<char> done(nodes_.size(), 0);
    for (const std::uint32_t n : order) done[n] = 1;
    const std::vector<std::uint32_t> cycle = find_cycle(readers, done);
    std::string text;
    for (std::size_t i = 0; i < cycle.size() && i < kMostNodesOfCycle; ++i)
      text += shown(nodes_[cycle[i]].name) + " -> ";
    if (cycle.size() > kMostNodesOfCycle) text += fmt::format("... ({} nodes) -> ", cycle.size());
    throw ConfigError(nodes_[cycle.front()].where, "node",
                      fmt::format("a node waits for itself: {}{}; remove one of these edges", text,
                                  shown(nodes_[cycle.front()].name)));
  }
  NamedGraph out;
  out.name = std::move(name);
  std::vector<std::uint32_t> number(nodes_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  for (PlacementEdge& e : edges) e = {number[e.from], number[e.to], e.bytes};

  std::vector<std::uint32_t> leader(nodes_.size());  // of the set of nodes that share a device
  for (std::uint32_t n = 0; n < leader.size(); ++n) leader[n] = n;
  const auto root = [&](std::uint32_t n) {
    while (leader[n] != n) n = leader[n] = leader[leader[n]];
    return n;
  };
  std::vector<char> grouped(nodes_.size(), 0);
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].with.empty()) continue;
    const std::uint32_t other = find(nodes_[n].with, nodes_[n].where, "with");
    leader[root(n)] = root(other);
    grouped[n] = grouped[other] = 1;
  }
  std::vector<std::int32_t> group(nodes_.size(), -1);
  double total = 0;
  for (const std::uint32_t n : order) {
    std::int32_t own = -1;
    if (grouped[n]) {
      std::int32_t& of_set = group[root(n)];
      if (of_set < 0) of_set = out.graph.groups++;
      own = of_set;
    }
    total += nodes_[n].seconds;
    out.graph.add_node(to_ticks(nodes_[n].seconds), nodes_[n].bytes, nodes_[n].lifetime, own);
    out.nodes.push_back(nodes_[n].name);
  }
  if (total * kTicksPerSecond > static_cast<double>(kMostTicks))
    throw ConfigError(fmt::format("{}: the times of all nodes add up to {:.3g} s; at most 1.1e6 s", out.name, total));
  out.graph.set_edges(edges);
  return out;
}

}  // namespace epocast
