#pragma once
// Calls a function in a child process and waits for it.

#include <functional>
#include <string>

#include "experiments/fork_pool.hpp"

namespace epocast {

/// Calls `work` in a child, which ends with SIGALRM after `seconds` (0: never) and has no memory beyond `bytes` (0:
/// any). Throws std::runtime_error if the system allows no child. REQUIRES: no other threads in this process.
JobOutcome run_isolated(const std::function<std::string()>& work, double seconds, double bytes);

}  // namespace epocast
