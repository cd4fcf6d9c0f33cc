#pragma once
// How large a task graph may be.

#include <cstddef>

#include "sim/error.hpp"

namespace epocast {

// A task takes about 0.7 kB with its edges until its graph is simulated: 2 GB for a pipeline of 64 stages and 512
// micro-batches, a GPT of 1 T parameters, which has more than 2,000,000 tasks; an edge takes 50 B. A study that needs
// more repeats something a million times in one step.
inline constexpr std::size_t kMostTasks = 3'000'000;
inline constexpr std::size_t kMostEdges = 20'000'000;

// A task of so many ranks is executed so many times in a step, where none of them can stand for the others; each takes
// some 100 B.
inline constexpr std::size_t kMostExecutions = 64'000'000;

// From so many on, ranks shall stand for each other, by which algorithms collectives take or in lock step: ten times as
// many, of a thousand ranks whose flows share links, take a quarter of a minute.
inline constexpr std::size_t kManyExecutions = 20'000;

// Of collectives of more ranks, flows count like executions: a step of 384 ranks, none of which is like another, takes
// some 5 ms.
inline constexpr std::size_t kManyRanks = 128;

// Of collectives of fewer, too, from so many flows in a step on: each takes some 10 us.
inline constexpr std::size_t kManyFlows = 100'000;

// Likewise, where one flow stands for those that do the same: each takes some microsecond.
inline constexpr std::size_t kManyClassFlows = 1'000'000;

/// Thrown while a graph is built that memory may not bear.
class GraphTooLarge : public SimulationError {
 public:
  using SimulationError::SimulationError;
};

}  // namespace epocast
