#pragma once
// The task graph of a global configuration: what every device computes, operator by operator, and what it sends.

#include "sim/strategy.hpp"
#include "strategies/layerwise/plan.hpp"
#include "strategies/layerwise/tile_times.hpp"

namespace epocast {

struct LayerwiseSettings {
  GradientExchange exchange = GradientExchange::all_reduce;
  BytesPerSecond server_rate{0};  ///< of the server in host memory, there and back together
  bool overlap = true;            ///< gradients travel during the backward pass; else all after it
};

/// Each device computes its tiles in the network's order and back, then updates its parameters. What a tile lacks is
/// sent by those that hold it, one message after the other from each device; gradients of activations return the same
/// way. Adds memory by device to the step.
TrainingStep layerwise_step(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times,
                            const LayerwiseSettings& settings);

}  // namespace epocast
