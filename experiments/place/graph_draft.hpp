#pragma once
// An operator graph as a file lists it: nodes with names in any order, then put into a topological order.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/error.hpp"
#include "strategies/placement/placement_graph.hpp"

namespace epocast {

/// A graph and what its nodes are called.
struct NamedGraph {
  std::string name;
  PlacementGraph graph;
  std::vector<std::string> nodes;          ///< by node
  std::vector<std::string> warnings = {};  ///< of what its file holds and the graph lacks
};

struct DraftNode {
  std::string name;
  double seconds = 0;
  double bytes = 0;
  Lifetime lifetime = Lifetime::normal;
  std::string with;  ///< a node whose device it shares; empty: any device
  Location where;
};

class GraphDraft {
 public:
  /// Throws ConfigError if there is a node of this name.
  void add(DraftNode node);
  void add_edge(std::string_view from, std::string_view to, double bytes, const Location& where);
  /// The graph in the order in which nodes were added as far as edges allow it. Throws ConfigError for no nodes, edges
  /// and companions that name no node, a node that waits for itself (the cycle is named), and times that add up to more
  /// than 13 days.
  NamedGraph finish(std::string name) const;

 private:
  struct DraftEdge {
    std::string from, to;
    double bytes;
    Location where;
  };
  std::uint32_t find(const std::string& name, const Location& where, const char* role) const;

  std::vector<DraftNode> nodes_;
  std::vector<DraftEdge> edges_;
  std::unordered_map<std::string, std::uint32_t> index_;
};

/// Reads a graph from a .csv or .json file; docs/placement.md has the formats: ours, and traces of PyTorch's profiler
/// and of Chakra, told apart by their keys. Throws ConfigError with file and line.
NamedGraph read_graph_file(const std::string& file);
/// The same from text; `file` stands for its name.
NamedGraph read_any_json(const std::string& text, const std::string& file);
NamedGraph read_graph_csv(const std::string& text, const std::string& file);
NamedGraph read_graph_json(const std::string& text, const std::string& file);

/// An execution trace: PyTorch's observer's, linked with the profiler's durations, or one in Chakra's own schema
/// (mlcommons/chakra, et_def.proto) as JSON. Tensors have numbers there, so that edges and memory are exact.
NamedGraph read_chakra_trace(const std::string& text, const std::string& file);
/// A Chrome trace of PyTorch's profiler (Kineto). It has no tensors' identities: operators form a chain in which each
/// reads the largest of its inputs, and what autograd runs for an operator reads the operator's inputs too.
NamedGraph read_profiler_trace(const std::string& text, const std::string& file);

}  // namespace epocast
