#include "strategies/partitioners/graph_expansion.hpp"

#include <algorithm>

namespace epocast {
namespace {

/// Of each edge of a net; 0 if the net makes none.
double edge_weight_of(const Hypergraph& graph, int net) {
  const std::size_t pins = graph.pins(net).size();
  return pins < 2 ? 0 : graph.cost(net) / static_cast<double>(pins - 1);
}

/// Nets that make edges, by vertex.
std::vector<std::vector<int>> nets_by_vertex(const Hypergraph& graph) {
  std::vector<std::vector<int>> out(static_cast<std::size_t>(graph.vertices()));
  for (int net = 0; net < graph.nets(); ++net)
    if (edge_weight_of(graph, net) > 0)
      for (const int pin : graph.pins(net)) out[static_cast<std::size_t>(pin)].push_back(net);
  return out;
}

WeightedGraph with_tasks_of(const Hypergraph& graph) {
  WeightedGraph out;
  out.tasks = graph.vertices();
  for (int v = 0; v < graph.vertices(); ++v) out.vertex_weight.push_back(graph.weight(v));
  return out;
}

}  // namespace

double clique_pairs(const Hypergraph& graph) {
  double pairs = 0;
  for (int net = 0; net < graph.nets(); ++net) {
    const auto pins = static_cast<double>(graph.pins(net).size());
    if (edge_weight_of(graph, net) > 0) pairs += pins * (pins - 1) / 2;
  }
  return pairs;
}

std::optional<WeightedGraph> expand_to_cliques(const Hypergraph& graph, std::size_t most_edges) {
  WeightedGraph out = with_tasks_of(graph);
  const std::vector<std::vector<int>> nets = nets_by_vertex(graph);
  std::vector<double> weight_to(nets.size());  // 0 but for neighbours of the vertex at hand
  std::vector<int> row;
  for (int v = 0; v < graph.vertices(); ++v) {
    row.clear();
    for (const int net : nets[static_cast<std::size_t>(v)]) {
      const double weight = edge_weight_of(graph, net);
      for (const int pin : graph.pins(net)) {
        if (pin == v) continue;
        double& sum = weight_to[static_cast<std::size_t>(pin)];
        if (sum == 0) row.push_back(pin);
        sum += weight;
      }
    }
    std::sort(row.begin(), row.end());
    for (const int pin : row) {
      out.neighbour.push_back(pin);
      out.edge_weight.push_back(weight_to[static_cast<std::size_t>(pin)]);
      weight_to[static_cast<std::size_t>(pin)] = 0;
    }
    out.begin.push_back(out.neighbour.size());
    if (out.neighbour.size() > 2 * most_edges) return std::nullopt;
  }
  return out;
}

WeightedGraph expand_to_stars(const Hypergraph& graph) {
  WeightedGraph out = with_tasks_of(graph);
  std::vector<int> centre(static_cast<std::size_t>(graph.nets()), -1);
  for (int net = 0; net < graph.nets(); ++net) {
    if (edge_weight_of(graph, net) == 0) continue;
    centre[static_cast<std::size_t>(net)] = out.vertices();
    out.vertex_weight.push_back(0);
  }
  for (const std::vector<int>& nets : nets_by_vertex(graph)) {
    for (const int net : nets) {
      out.neighbour.push_back(centre[static_cast<std::size_t>(net)]);
      out.edge_weight.push_back(edge_weight_of(graph, net));
    }
    out.begin.push_back(out.neighbour.size());
  }
  for (int net = 0; net < graph.nets(); ++net) {
    if (edge_weight_of(graph, net) == 0) continue;
    std::vector<int> pins(graph.pins(net).begin(), graph.pins(net).end());
    std::sort(pins.begin(), pins.end());
    out.neighbour.insert(out.neighbour.end(), pins.begin(), pins.end());
    out.edge_weight.insert(out.edge_weight.end(), pins.size(), edge_weight_of(graph, net));
    out.begin.push_back(out.neighbour.size());
  }
  return out;
}

double edge_cut(const WeightedGraph& graph, const std::vector<int>& part_of) {
  double twice = 0;
  for (std::size_t v = 0; v < graph.vertex_weight.size(); ++v)
    for (std::size_t e = graph.begin[v]; e < graph.begin[v + 1]; ++e)
      if (part_of[static_cast<std::size_t>(graph.neighbour[e])] != part_of[v]) twice += graph.edge_weight[e];
  return twice / 2;
}

}  // namespace epocast
