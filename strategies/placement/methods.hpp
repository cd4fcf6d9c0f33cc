#pragma once
// Methods that place operator graphs, by name, and what they come to once memory has been seen to.

#include <span>
#include <vector>

#include "strategies/placement/pardnn.hpp"

namespace epocast {

/// A way to give each node a device.
struct PlacementMethod {
  const char* name;
  const char* description;
  Placement (*place)(const PlacementGraph&, std::span<const Ticks> transfer, int devices);  ///< null: ParDNN
};

/// ParDNN, as it is written too, and what it is compared with.
std::span<const PlacementMethod> placement_methods();

/// The stages of a placement; the last is the result. What does not fit is repaired by overflow handling.
/// REQUIRES devices >= 1.
std::vector<PlacementStage> place_by(const PlacementMethod& method, const PlacementGraph& graph,
                                     const PlacementMachine& machine, const ParDnnOptions& options = {});

/// The best result of all methods. REQUIRES devices >= 1.
PlacementStage place_best(const PlacementGraph& graph, const PlacementMachine& machine,
                          const ParDnnOptions& options = {});

}  // namespace epocast
