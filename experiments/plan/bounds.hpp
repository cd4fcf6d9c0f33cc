#pragma once
// What a scenario takes at least, without simulating it.

#include <string>

#include "experiments/scenario.hpp"

namespace epocast {

/// Of a scenario that was read and compiled. Costs are those of the time `least.total_s`, which no simulation
/// undercuts.
struct CheapBounds {
  bool fits = true;      ///< in the memory of every device
  double excess = 0;     ///< B that the device that lacks most lacks
  ScenarioResult least;  ///< total_s, cost, energy_j, co2_kg, and time_to_target_s where its epochs are given
};

/// Each queue does one thing at a time, and each cycle of dependencies takes as long as its computations: with all
/// communication free, no iteration is shorter than the longest of these (compare CycleBound, which adds the network).
/// With noise, twentieths of that are not relied on: draws may be short by chance.
CheapBounds cheap_bounds(const ScenarioSetup& setup);

/// s that an iteration of the graph takes at least.
double computing_bound(const CyclicTaskGraph& graph);

}  // namespace epocast
