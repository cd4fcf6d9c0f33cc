#pragma once
// Hypergraphs as graphs, for partitioners that know of edges only. Neither expansion is exact: what an edge cut costs
// is not what its net costs. That is the price of a graph partitioner, and why its result is judged on the hypergraph.
//
// Both give an edge of a net with p pins the weight cost / (p - 1). Separating one pin of a clique then cuts the net's
// cost, as it should (the usual model; Alpert and Kahng, Integration 19, 1995); halves of a large one cut about p / 4
// times that much. Nets of one pin or without cost make no edges.

#include <cstddef>
#include <optional>
#include <vector>

#include "strategies/partitioners/hypergraph.hpp"

namespace epocast {

/// Undirected; an edge is in the rows of both of its vertices. Vertices from `tasks` on are not the hypergraph's.
struct WeightedGraph {
  int tasks = 0;
  std::vector<double> vertex_weight;
  std::vector<std::size_t> begin{0};  ///< [vertex]: where its row of neighbours begins; then the end of the last
  std::vector<int> neighbour;         ///< ascending in each row
  std::vector<double> edge_weight;    ///< [as neighbour], > 0

  int vertices() const { return static_cast<int>(vertex_weight.size()); }
};

/// Pairs of pins that share a net, counted once per net: the time that expand_to_cliques takes, and at least the edges.
double clique_pairs(const Hypergraph& graph);

/// Every two pins of a net are joined. Edges of nets with the same two pins add up. Nothing if there are more than
/// `most_edges`.
std::optional<WeightedGraph> expand_to_cliques(const Hypergraph& graph, std::size_t most_edges);

/// Every net that makes edges is a vertex without weight, in order of nets after the tasks, joined to its pins.
WeightedGraph expand_to_stars(const Hypergraph& graph);

/// Weight of the edges between parts. REQUIRES: a part for every vertex.
double edge_cut(const WeightedGraph& graph, const std::vector<int>& part_of);

}  // namespace epocast
