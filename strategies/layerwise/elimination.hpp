#pragma once
// The cheapest choice of a configuration for every node of a graph whose cost is a sum over nodes and edges, by
// eliminating nodes and edges (DeePa, section 4).
//
// A node with one edge in and one out becomes an edge, equation 2; parallel edges are added up, equation 3. Where
// neither goes on, any node with one or two neighbours is taken out in the same way, whatever the directions of its
// edges; what is left is enumerated, with bounds. Costs may be infinite: not possible.

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

namespace epocast {

/// Costs of an edge: a row for each configuration of `from`.
struct CostTable {
  std::size_t rows = 0, columns = 0;
  std::vector<double> cost;

  CostTable() = default;
  CostTable(std::size_t r, std::size_t c, double value = 0) : rows(r), columns(c), cost(r * c, value) {}
  double& operator()(std::size_t row, std::size_t column) { return cost[row * columns + column]; }
  double operator()(std::size_t row, std::size_t column) const { return cost[row * columns + column]; }
};

struct CostGraph {
  struct Edge {
    std::size_t from = 0, to = 0;
    CostTable table;
  };
  std::vector<std::vector<double>> nodes;  ///< by node, by configuration; none is empty
  std::vector<Edge> edges;                 ///< from a node to another

  /// Equation 1. REQUIRES: a configuration for every node.
  double cost(const std::vector<std::size_t>& choice) const;
};

struct Optimum {
  std::vector<std::size_t> choice;  ///< by node
  double cost = 0;
  std::size_t left_by_paper = 0;  ///< nodes that node and edge elimination as published leave
  std::size_t enumerated = 0;     ///< nodes that had to be tried out
};

/// What is left after all eliminations is too large to be tried out.
class SearchTooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The global optimum; of several equally good ones the same each time. Throws SearchTooLarge after `most_tries`
/// partial choices of what cannot be eliminated. O(nodes x configurations^3) where nothing is left.
Optimum minimise(const CostGraph& graph, std::size_t most_tries = 200'000'000);

}  // namespace epocast
