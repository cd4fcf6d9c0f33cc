#pragma once
// How large a task graph may be.

#include <cstddef>

#include "sim/error.hpp"

namespace epocast {

// A task takes about 1 kB until its graph is simulated, an edge 50 B: 3 GB at most. A study that needs as many repeats
// something a million times in one step.
inline constexpr std::size_t kMostTasks = 2'000'000;
inline constexpr std::size_t kMostEdges = 20'000'000;

/// Thrown while a graph is built that memory may not bear.
class GraphTooLarge : public SimulationError {
 public:
  using SimulationError::SimulationError;
};

}  // namespace epocast
