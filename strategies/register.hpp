#pragma once

#include "sim/strategy.hpp"
#include "strategies/bodies/body.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

/// All built-in strategies. A strategy is added by its two files, its test, one line in register.cpp and one in CMake.
StrategyRegistry builtin_strategies();

/// What compositions are put together from.
BodyRegistry builtin_bodies();
SynchronisationRegistry builtin_synchronisations();

/// Adds a strategy class that has a static `EntryInfo info()` and a constructor from its options.
template <class S>
void add_strategy(StrategyRegistry& registry) {
  registry.add(S::info(), [](const ConfigNode& options) { return std::make_unique<S>(options); });
}

}  // namespace epocast
