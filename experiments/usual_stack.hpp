#pragma once
// The software that people run a strategy with, where a study does not say.

#include <string>

#include "sim/cluster.hpp"
#include "sim/config.hpp"

namespace epocast {

/// The stack of a table by strategy and kind of device. `strategy`: as in a study, a name, or a map with a name or a
/// mesh. On accelerators `pytorch_ddp`, `pytorch_fsdp`, `deepspeed` or `horovod` for what these do, compositions over
/// data alone too; on TPUs `xla` in place of each of them; `megatron` for pipelines and for what divides layers or
/// sequences, `layerwise` too. On processors `gloo` for all that sends messages. All else is `ideal`, and so are
/// devices whose kind cannot be told.
///
/// An accelerator shares a machine with others of its kind, or multiplies faster in another precision than fp32. A
/// processor is one by its model's name (Xeon, EPYC, POWER9, Graviton..).
std::string usual_stack(const ConfigNode& strategy, const Device& device);

}  // namespace epocast
