#pragma once
// The software that people run a strategy with, where a study does not say.

#include <string>

#include "sim/cluster.hpp"

namespace epocast {

/// `pytorch_ddp`, `pytorch_fsdp` or `horovod` for what these do on accelerators; `ideal` for all else: no stack here
/// has constants for other strategies, or for processors as strong as a server's.
std::string usual_stack(const std::string& strategy, const Device& device);

}  // namespace epocast
