#pragma once

#include <string>

#include "sim/strategy.hpp"
#include "strategies/bodies/body.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

/// What compositions are put together from.
BodyRegistry builtin_bodies();
SynchronisationRegistry builtin_synchronisations();

/// All built-in strategies, and compositions of these parts. A strategy is added by its two files, its test, one line
/// in register.cpp and one in CMake; so is a synchronisation.
StrategyRegistry builtin_strategies(const BodyRegistry& bodies = builtin_bodies(),
                                    const SynchronisationRegistry& synchronisations = builtin_synchronisations());

/// The strategy that a composition is by itself if its body's devices have programs of their own (mpmd_body.hpp); else
/// "". `strategy`: of a study, which may not be valid.
std::string strategy_of_body(const ConfigNode& strategy);

/// Adds a class that has a static `EntryInfo info()` and a constructor from its options.
template <class S>
void add_strategy(StrategyRegistry& registry) {
  registry.add(S::info(), [](const ConfigNode& options) { return std::make_unique<S>(options); });
}
template <class S>
void add_synchronisation(SynchronisationRegistry& registry) {
  registry.add(S::info(), [](const ConfigNode& options) { return std::make_unique<S>(options); });
}

}  // namespace epocast
