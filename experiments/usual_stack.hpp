#pragma once
// The software that people run a strategy with, where a study does not say.

#include <string>

#include "sim/cluster.hpp"

namespace epocast {

/// The stack of a table by strategy and kind of device. On accelerators `pytorch_ddp`, `pytorch_fsdp` or `horovod` for
/// what these do. On processors `gloo` for all that sends messages, but for steps composed over a `mesh`, which have
/// none on either kind. All else is `ideal`, and so are devices whose kind cannot be told.
///
/// An accelerator shares a machine with others of its kind, or multiplies faster in another precision than fp32. A
/// processor is one by its model's name (Xeon, EPYC, POWER9, Graviton..).
std::string usual_stack(const std::string& strategy, const Device& device);

}  // namespace epocast
