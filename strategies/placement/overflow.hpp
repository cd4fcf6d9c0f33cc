#pragma once
// ParDNN's second step: moves nodes until no device holds more than its memory (Qararyah 2020, section 4.1.2).
//
// Where a device overflows, what it holds at that moment is relieved as a 0-1 min-knapsack (eq. 4.4), greedily: each
// candidate is a set of nodes that has to leave so that one output need not be there, its gain the output's bytes, its
// cost eq. 4.5, the work that moves plus the transfers that arise with neighbours left behind. One heap is ordered by
// cost over bytes; a second, by cost, holds the candidates that end the overflow by themselves; of both tops the
// cheaper one is taken. It moves where it fits, first to the device with which it exchanges most.
//
// Differences from the thesis: a candidate is all later readers of an output on the device, not only the last, as
// memory stays until all have run; a variable moves with its group and with those that exchange its values. Times are
// kept while nodes move, with memory by device and time in segment trees, and the graph is replayed after each round
// instead of after each move: O(V log V) a round.

#include <cstddef>
#include <string>
#include <vector>

#include "strategies/placement/replay.hpp"

namespace epocast {

struct OverflowResult {
  bool fits = false;  ///< in the last replay, with `options`
  int rounds = 0;
  std::size_t moved_nodes = 0;  ///< that ended on another device than they came with
};

/// Moves nodes of `placement`. REQUIRES machine.memory > 0.
OverflowResult resolve_overflow(const PlacementGraph& graph, const PlacementMachine& machine,
                                const ReplayOptions& options, Placement& placement, int most_rounds = 12);

/// Why no placement can fit: a node that does not fit beside what it reads, a group that is too large for a device, or
/// variables that are too large for all devices together. Empty if these bounds do not show it.
struct MemoryBound {
  enum class Kind { none, node, group, all };
  Kind kind = Kind::none;
  double bytes = 0;        ///< at least needed
  std::uint32_t node = 0;  ///< that node, or the group's first
};
MemoryBound memory_bound(const PlacementGraph& graph, const PlacementMachine& machine);

}  // namespace epocast
