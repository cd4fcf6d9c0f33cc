#pragma once
// A training step without a pipeline: every worker is a replica that has all layers.

#include "strategies/step/synchronisation.hpp"

namespace epocast {

/// Forward and backward passes of `micro_batches` of each worker's batch, one after the other, layer by layer.
/// REQUIRES: they divide it.
TrainingStep single_stage_step(const StrategyContext& context, int micro_batches,
                               const Synchronisation& synchronisation);

}  // namespace epocast
