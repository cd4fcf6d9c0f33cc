#pragma once
// When every task of a scenario ran, for targets that check more than its results.

#include <string>
#include <vector>

#include "experiments/reproduce/target.hpp"
#include "experiments/study.hpp"

namespace epocast {

struct TimelineEntry {
  std::string operation;
  std::uint32_t rank = 0;
  std::int64_t iteration = 0;
  double start = 0;  ///< s
  double end = 0;    ///< s
};

/// Simulates all iterations of a scenario's first phase, in a process of its own, and returns what ran, by end.
/// Throws ConfigError for a scenario that is wrong and SimulationError if it cannot be simulated.
std::vector<TimelineEntry> simulate_timeline(const Scenario& scenario, const TargetContext& context);

}  // namespace epocast
