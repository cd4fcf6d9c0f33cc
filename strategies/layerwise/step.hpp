#pragma once
// The task graph of a global configuration: what every device computes, operator by operator, and what it sends.

#include "strategies/layerwise/gradient_writer.hpp"

namespace epocast {

/// Each device computes its tiles in the network's order and back, then updates its parameters. What a tile lacks is
/// sent by those that hold it, one message after the other from each device; gradients of activations return the same
/// way. With several stages or micro-batches, each stage's devices work in the order of the plan's schedule, and
/// gradients of parameters are exchanged after the last micro-batch. Adds memory by device to the step.
TrainingStep layerwise_step(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times,
                            const LayerwiseSettings& settings);

}  // namespace epocast
