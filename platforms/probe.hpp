#pragma once
// Lets SimGrid try a platform file where its death does no harm.

#include <filesystem>

#include "sim/cluster.hpp"
#include "sim/quantity.hpp"

namespace epocast {

/// Loads `file` into SimGrid in a forked child and asks for the routes between the first and last hosts.
/// Throws ConfigError, with what SimGrid said, if the child reports an error, dies of a signal or takes longer than
/// `time_limit`; std::runtime_error if there is no SimGrid here. The child is gone when this returns. Forks: call it
/// from a process without other threads.
void probe_platform(const std::filesystem::path& file, Seconds time_limit = Seconds(60));

/// The same for a loaded platform; also checks that SimGrid has its devices as hosts, in the same order.
void probe_platform(const Cluster& cluster, Seconds time_limit = Seconds(60));

}  // namespace epocast
