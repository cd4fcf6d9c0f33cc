#pragma once
// ParDNN's refinement of a mapping: swaps of clusters, and nodes of the critical path that change devices (Qararyah
// 2020, section 4.1.1, after McCreary et al. 1996); and a search on replays for what levels do not see, waiting for
// devices.

#include <span>
#include <vector>

#include "strategies/placement/replay.hpp"
#include "strategies/placement/slicing.hpp"

namespace epocast {

/// Swaps pairs of secondary clusters on different devices, the second of which can start within the span of the first,
/// where that lessens the work of the busier of both devices within the span plus transfers; each cluster at most once.
/// Gives the number of swaps. O(V log V).
std::size_t swap_clusters(const PlacementGraph& graph, std::span<const Ticks> transfer, const Clusters& clusters,
                          std::span<const Ticks> top, int devices, Placement& placement);

/// One round: on the critical path of the placed graph, moves an end of an edge between devices to the other's device
/// where the longest path through it becomes shorter than the critical path. Levels know nothing of devices that are
/// busy, so that this can make a replay longer. Gives the number of moves.
std::size_t switch_nodes(const PlacementGraph& graph, std::span<const Ticks> transfer, Placement& placement);

/// Moves nodes, or groups, that a replay's end waits for, one by one to other devices, and keeps what makes the replay
/// shorter. `budget`: how many nodes it may replay in total. Gives the number of moves.
std::size_t improve_by_replay(const PlacementGraph& graph, const PlacementMachine& machine,
                              const ReplayOptions& options, double budget, Placement& placement);

}  // namespace epocast
