#pragma once
// What a scenario takes at least, without simulating it.

#include "experiments/scenario.hpp"

namespace epocast {

/// Of a scenario that was read and compiled. Costs are those of the time `least.total_s`, which no simulation
/// undercuts.
struct CheapBounds {
  bool fits = true;      ///< in the memory of every device
  double excess = 0;     ///< B that the device that lacks most lacks
  ScenarioResult least;  ///< workers, total_s, cost, energy_j, co2_kg, and time_to_target_s where its epochs are given
};

/// See sim/least_time.hpp. `engine`: of the scenario's platform, or null: then as if communication were free. With
/// noise, twentieths of that are not relied on: draws may be short by chance.
CheapBounds cheap_bounds(const ScenarioSetup& setup, SimEngine* engine);

}  // namespace epocast
