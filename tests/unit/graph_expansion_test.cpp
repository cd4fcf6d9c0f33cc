// What graphs make of small hypergraphs, counted by hand.
#include "strategies/partitioners/graph_expansion.hpp"

#include <catch2/catch.hpp>

#include <array>

namespace epocast::graph_expansion_test {

namespace {

/// Nets {0 1 2} of cost 6, {1 2} of cost 5, and two that join nothing: one pin, and no cost.
Hypergraph small() {
  Hypergraph graph;
  for (const double weight : {1.0, 2.0, 3.0, 4.0}) graph.add_vertex(weight);
  graph.add_net(6, std::array{0, 2, 1});
  graph.add_net(5, std::array{2, 1});
  graph.add_net(9, std::array{3});
  graph.add_net(0, std::array{0, 3});
  return graph;
}

}  // namespace

TEST_CASE("cliques: an edge for every two pins, cost / (pins - 1), summed over nets") {
  const WeightedGraph graph = expand_to_cliques(small(), 3).value();
  CHECK_FALSE(expand_to_cliques(small(), 2).has_value());
  CHECK(graph.tasks == 4);
  CHECK(graph.vertex_weight == std::vector<double>{1, 2, 3, 4});
  // 6 / 2 between any two of 0, 1, 2; 5 / 1 more between 1 and 2.
  CHECK(graph.begin == std::vector<std::size_t>{0, 2, 4, 6, 6});
  CHECK(graph.neighbour == std::vector<int>{1, 2, 0, 2, 0, 1});
  CHECK(graph.edge_weight == std::vector<double>{3, 3, 3, 8, 3, 8});
  CHECK(clique_pairs(small()) == 3 + 1);
  // Vertex 0 alone costs the net of three what it costs the hypergraph; vertex 1 alone 3 + 8.
  CHECK(edge_cut(graph, {1, 0, 0, 0}) == 6);
  CHECK(edge_cut(graph, {0, 1, 0, 0}) == 11);
}

TEST_CASE("stars: a vertex without weight for every net that can be cut") {
  const WeightedGraph graph = expand_to_stars(small());
  CHECK(graph.tasks == 4);
  CHECK(graph.vertex_weight == std::vector<double>{1, 2, 3, 4, 0, 0});
  CHECK(graph.begin == std::vector<std::size_t>{0, 1, 3, 5, 5, 8, 10});
  CHECK(graph.neighbour == std::vector<int>{4, 4, 5, 4, 5, 0, 1, 2, 1, 2});
  CHECK(graph.edge_weight == std::vector<double>{3, 3, 5, 3, 5, 3, 3, 3, 5, 5});
  // Net 0's vertex with vertices 1 and 2: one edge of 6 / 2 is cut.
  CHECK(edge_cut(graph, {1, 0, 0, 0, 0, 0}) == 3);
}

}  // namespace epocast::graph_expansion_test
