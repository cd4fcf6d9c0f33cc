#pragma once
// The machine that kernels are timed on.

#include <cstddef>
#include <string>
#include <vector>

#include "sim/quantity.hpp"

namespace epocast {

/// CPUs that this process may use.
std::vector<int> usable_cpus();

/// Binds thread i of OpenMP's to cpus[i], one thread each. Throws std::runtime_error if that is refused.
void pin_threads(const std::vector<int>& cpus);

std::string cpu_name();
std::string onednn_name();  ///< "oneDNN 2.6.3"
/// Of one CPU, in bytes; 32 MiB if the system does not say.
std::size_t last_level_cache();
std::string today();  ///< 2026-01-31

/// The rate of a product of two 2048 x 2048 matrices, the best of those that begin within `seconds`, at most 12: what
/// kernels can hope for.
FlopPerSecond measure_peak_rate(double seconds);
/// The rate of a[i] = b[i] + s c[i] over arrays far larger than the caches, three accesses each, the best of as many
/// (McCalpin 1995, STREAM triad).
BytesPerSecond measure_memory_bandwidth(std::size_t cache, double seconds);

}  // namespace epocast
