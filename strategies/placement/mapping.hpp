#pragma once
// From clusters to devices: ParDNN's mapping (Qararyah 2020, section 4.1.1, algorithm 2, eq. 4.2) and guided load
// balancing, which it is compared with.

#include <span>
#include <vector>

#include "strategies/placement/slicing.hpp"

namespace epocast {

/// Work of devices by top level: sums over ranges of levels in O(log V), as Fenwick trees with the devices side by
/// side.
class LevelLoads {
 public:
  /// Levels are those of the whole graph, before clustering.
  LevelLoads(const PlacementGraph& graph, std::span<const Ticks> top, int devices);

  void add(std::uint32_t node, int device, Ticks work);
  /// Adds to `loads`, by device, the work of nodes with begin <= top level < end.
  void sum(Ticks begin, Ticks end, std::vector<Ticks>& loads) const;
  /// Of all nodes of the graph, wherever they are.
  Ticks total(Ticks begin, Ticks end) const;

 private:
  std::size_t rank(Ticks level) const;
  void prefix(std::size_t levels, Ticks sign, std::vector<Ticks>& loads) const;

  std::size_t devices_;
  std::vector<Ticks> level_;       ///< distinct ones, ascending
  std::vector<std::uint32_t> of_;  ///< by node
  std::vector<Ticks> tree_;        ///< by level from 1, then device
  std::vector<Ticks> total_;       ///< prefix sums over levels
};

/// When a cluster can run: from the end of the last node that its first one reads to the start of the first reader of
/// its last one (table 4.2), by levels.
struct LevelSpan {
  Ticks begin = 0, end = 0;
};
LevelSpan span_of(const PlacementGraph& graph, std::span<const Ticks> top, std::span<const std::uint32_t> cluster,
                  Ticks makespan);

/// The time of transfers between a set of nodes and each device, and with nodes that have none yet.
struct PlacementTraffic {
  std::vector<Ticks> with;
  Ticks placed = 0;    ///< the sum of `with`
  Ticks unplaced = 0;  ///< with nodes of no device
};
/// `inside(node)`: whether it belongs to the set. `device[n]` is -1 for what is not placed.
template <class Inside>
void add_traffic(const PlacementGraph& graph, std::span<const Ticks> transfer, std::span<const std::int16_t> device,
                 std::uint32_t n, Inside inside, PlacementTraffic& traffic) {
  const auto count = [&](std::uint32_t other, Ticks time) {
    if (inside(other)) return;
    if (device[other] < 0) {
      traffic.unplaced += time;
    } else {
      traffic.with[static_cast<std::size_t>(device[other])] += time;
      traffic.placed += time;
    }
  };
  for (std::uint32_t e = graph.out_begin[n]; e < graph.out_begin[n + 1]; ++e) count(graph.to[e], transfer[e]);
  for (const std::uint32_t e : graph.in_edges(n)) count(graph.from[e], transfer[e]);
}

struct MappingCounts {
  std::size_t merged_first = 0;  ///< clusters that could not hide their transfers
  std::size_t balanced = 0;
};

/// Primaries keep their devices. A secondary cluster whose transfers exceed the work of others within its span joins
/// the primary it exchanges most with. The others follow, heaviest first, each to the device with the least work within
/// the span plus transfers with others (eq. 4.2); of equal ones, to that with which it exchanges most. Clusters without
/// work of their own cannot balance anything: they only follow their traffic. O(V log V).
Placement map_clusters(const PlacementGraph& graph, std::span<const Ticks> transfer, const Clusters& clusters,
                       std::span<const Ticks> top, int devices, MappingCounts* counts = nullptr);

/// Guided load balancing (Radulescu and van Gemund 1998): clusters in the order in which they can start, of equal ones
/// the heavier first, each to the device with the least work so far.
Placement guided_load_balancing(const PlacementGraph& graph, const Clusters& clusters, std::span<const Ticks> top,
                                int devices);

/// Puts every group on one device: where its work and its transfers with others weigh most.
void unite_groups(const PlacementGraph& graph, std::span<const Ticks> transfer, int devices, Placement& placement);

}  // namespace epocast
