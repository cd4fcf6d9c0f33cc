#pragma once
// Finds axes over keys that no scenario knows, before each of them fails for it.

#include "experiments/scenario.hpp"

namespace epocast {

/// Throws ConfigError, at the axis, if none of the scenarios (of many: of those that are looked at) knows the key of
/// one.
void check_axes(const std::vector<Scenario>& scenarios, const Registries& registries);

}  // namespace epocast
