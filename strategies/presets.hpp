#pragma once
// Names for what people say: settings of other strategies.

#include "sim/strategy.hpp"

namespace epocast {

/// Adds ddp, horovod, fsdp, zero1, zero2, zero3, gpipe, pipedream and megatron. What a preset fixes cannot be set
/// again.
void add_presets(StrategyRegistry& registry);

}  // namespace epocast
