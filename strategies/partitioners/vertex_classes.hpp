#pragma once
// Vertices of a hypergraph that can stand for one another.
//
// Filters of one layer weigh the same and are joined by nets in the same way, each by its own net to all filters of the
// next layer. What a partition costs then depends only on how many of them are in each part. This finds such classes
// in any hypergraph; a vertex that is like no other is a class of one.

#include <cstdint>
#include <vector>

#include "strategies/partitioners/hypergraph.hpp"

namespace epocast {

struct VertexClass {
  double weight = 0;          ///< of one vertex
  std::vector<int> vertices;  ///< ascending
};

/// Nets that differ only in which vertex of one class they hold. Net v of the family joins vertex v of class `source`
/// and all vertices of the classes `all`. With `source` = -1 it is a single net over `all`.
struct NetFamily {
  double cost = 0;  ///< of one net
  int source = -1;
  std::vector<int> all;  ///< ascending, without `source`
};

struct VertexClasses {
  std::vector<VertexClass> classes;  ///< by their first vertex
  std::vector<NetFamily> families;
};

/// Colours by weight, then again and again by the colours of nets and of the vertices in them, until no colour splits.
/// Two vertices of one colour look the same from anywhere, but for collisions of the hash.
std::vector<std::uint64_t> vertex_colours(const Hypergraph& graph);

/// Finds classes by colour refinement, and takes apart those that do not fit families.
VertexClasses find_classes(const Hypergraph& graph);

}  // namespace epocast
