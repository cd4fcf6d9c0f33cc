#pragma once
// Reads what makes a run irregular: `noise`, `stragglers`, `stops` and `degraded_links` of a study.

#include <cstdint>
#include <vector>

#include "sim/config.hpp"
#include "sim/disturbance.hpp"
#include "sim/noise.hpp"

namespace epocast {

struct Irregularity {
  NoiseModel noise;                       ///< with the first seed
  std::vector<std::uint64_t> seeds;       ///< at least one; each makes a run of its own
  std::vector<double> slowdown;           ///< by device; empty if nobody is always slow
  std::vector<Disturbance> slow_devices;  ///< for a while; stops among them
  std::vector<Disturbance> slow_links;
};

/// `workers`: of every phase, in rank order; worker n is the n-th device of each. Throws ConfigError.
Irregularity read_irregularity(const ConfigNode& config, const Cluster& cluster,
                               const std::vector<std::vector<DeviceId>>& workers);

}  // namespace epocast
