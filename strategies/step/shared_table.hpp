#pragma once
// Tables that one stage looks up and another multiplies by (Shoeybi et al. 2019: word embeddings on the first and the
// last stage of GPT): the second has a copy.

#include <vector>

#include "strategies/step/step_graph.hpp"

namespace epocast {

struct SharedTable {
  int original = 0, copy = 0;  ///< chunks
  std::size_t layer = 0;       ///< whose table it is
};

/// Those of a network that are on two stages. None where the network is not known (null), or where replicas of stages
/// are unequally many, so that a copy has no counterpart.
std::vector<SharedTable> shared_tables(const StepPlan& plan, const Model* model);

/// Adds what the copies need, with gradients and optimizer state. `memory`: by stage.
void count_shared_tables(const StepPlan& plan, const StrategyContext& context, std::vector<DeviceMemory>& memory);

}  // namespace epocast
