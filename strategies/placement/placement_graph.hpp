#pragma once
// An operator graph as placement sees it: what each node costs, and what its edges carry. Flat arrays and compressed
// sparse rows, made for a million nodes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/operator_graph.hpp"

namespace epocast {

/// Time in picoseconds. Whole numbers, so that nodes of one critical path have equal levels in every digit, and sums of
/// loads do not depend on their order.
using Ticks = std::int64_t;
inline constexpr double kTicksPerSecond = 1e12;
inline constexpr Ticks kMostTicks = std::int64_t{1} << 60;  ///< 13 days; all work and traffic of a graph stay below

/// Rounds. REQUIRES 0 <= seconds < 1e6.
inline Ticks to_ticks(double seconds) { return static_cast<Ticks>(seconds * kTicksPerSecond + 0.5); }
inline double to_seconds(Ticks ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

struct PlacementEdge {
  std::uint32_t from = 0, to = 0;
  double bytes = 0;  ///< 0: control only
};

/// Nodes are in a topological order: edges go from lower to higher numbers.
struct PlacementGraph {
  // By node.
  std::vector<Ticks> time;               ///< on one device
  std::vector<double> memory;            ///< bytes of all outputs
  std::vector<Lifetime> lifetime;        ///< of that memory
  std::vector<double> output;            ///< bytes of a whole copy: its memory, or its largest edge if that has more
  std::vector<std::int32_t> group;       ///< nodes of a group share a device; -1: free
  std::vector<std::uint32_t> out_begin;  ///< edges out_begin[n] .. out_begin[n + 1] - 1 leave node n
  std::vector<std::uint32_t> in_begin;   ///< places in in_edge of the edges that reach node n
  // By edge, in the order in which they leave nodes.
  std::vector<std::uint32_t> from, to;
  std::vector<double> bytes;
  std::vector<std::uint32_t> in_edge;  ///< edge numbers in the order in which they reach nodes
  std::int32_t groups = 0;

  std::size_t size() const { return time.size(); }
  std::size_t edges() const { return to.size(); }
  std::span<const std::uint32_t> in_edges(std::size_t node) const {
    return {in_edge.data() + in_begin[node], in_edge.data() + in_begin[node + 1]};
  }
  Ticks total_time() const;

  /// Adds a node without edges. Set edges once all nodes are there.
  void add_node(Ticks node_time, double node_memory, Lifetime node_lifetime = Lifetime::normal,
                std::int32_t node_group = -1);
  /// Edges in any order; several between two nodes are kept apart. REQUIRES from < to < size() for each.
  void set_edges(std::span<const PlacementEdge> list);
};

/// What is placed on: equal devices, each pair with a link of its own; times of transfers are latency + bytes / rate.
struct PlacementMachine {
  int devices = 1;
  Ticks latency = 0;
  double bytes_per_second = 1;  ///< in one direction
  double memory = 0;            ///< bytes of each device that may be used; 0: without limit

  Ticks transfer_time(double bytes) const {
    return latency + static_cast<Ticks>(bytes / bytes_per_second * kTicksPerSecond + 0.5);
  }
};

/// By edge: how long it takes between two devices.
std::vector<Ticks> transfer_times(const PlacementGraph& graph, const PlacementMachine& machine);

/// By group: its nodes, in their order.
std::vector<std::vector<std::uint32_t>> group_members(const PlacementGraph& graph);

/// A device for each node, from 0.
using Placement = std::vector<std::int16_t>;

/// From a model's graph and a time for each of its nodes [s]. Nodes that do not run() are there, but cost
/// nothing: they do not run in the training loop. What works in a variable's memory, and the optimizer's slots beside
/// it, form a group with the variable. A node that only hands on its first input in another shape has no memory of its
/// own: its readers read that input. REQUIRES a time for each node.
PlacementGraph placement_graph(const OperatorGraph& graph, std::span<const double> seconds);

}  // namespace epocast
