#pragma once
// Says who waits for whom when nothing can happen any more.

#include <string>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/readiness.hpp"

namespace epocast {

/// An instance that will never end, because its device stands still for ever.
struct StuckInstance {
  Instance instance;
  DeviceId device = 0;  ///< that stands still
  double since = 0;     ///< s from the start of the phase
};

/// What is known when nothing is left to happen.
struct Standstill {
  const CompiledGraph& graph;
  const Cluster& cluster;
  const Readiness& readiness;
  const std::vector<std::uint32_t> started;  ///< iterations, by instance
  const std::vector<double>& ended;          ///< s from the start of the phase, by instance: when it last ended
  const std::vector<StuckInstance>& stuck;
  std::int64_t iterations = 0;  ///< that every instance should have started; 0: no telling
  double date = 0;              ///< s from the start of the phase
};

/// A text of several lines if somebody waits in vain, else "". A rank whose device stands still for ever harms nobody
/// by that alone.
std::string describe_deadlock(const Standstill& s);

}  // namespace epocast
