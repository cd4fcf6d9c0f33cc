#pragma once
// Whether the collectives of a study can be carried out as it asks.

#include "experiments/scenario.hpp"

namespace epocast {

/// Refuses an algorithm that cannot do what the strategy wants of it, or not between the workers that do it together;
/// only the strategy's graph tells. `collective`: the study's settings. Throws ConfigError.
void check_collectives(const ScenarioSetup& setup, const ConfigNode& collective);

}  // namespace epocast
