#pragma once
// What all ways of handling overflow have in common: replay, look at memory, move nodes, again.

#include <functional>
#include <span>
#include <vector>

#include "strategies/placement/overflow.hpp"
#include "strategies/placement/replay.hpp"

namespace epocast {

/// What a round starts from.
struct OverflowState {
  std::span<const Ticks> transfer;                      ///< by edge
  std::span<const std::vector<std::uint32_t>> members;  ///< by group
  const ReplayResult& times;                            ///< of the placement as it is
  const std::vector<Residence>& residences;             ///< of the same replay
  double peak;                                          ///< bytes of the fullest device
};

/// Runs rounds until no device holds more than machine.memory. `round` moves nodes of `placement`, and gives whether
/// that was worth another replay. REQUIRES machine.memory > 0.
OverflowResult overflow_rounds(const PlacementGraph& graph, const PlacementMachine& machine,
                               const ReplayOptions& options, Placement& placement, int most_rounds,
                               const std::function<bool(const OverflowState&)>& round);

}  // namespace epocast
