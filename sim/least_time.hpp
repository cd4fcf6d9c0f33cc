#pragma once
// What a graph takes at least, without running it.
//
// Each queue does one thing at a time; each cycle of dependencies takes as long as its tasks do on an idle network; a
// link moves no more than its bandwidth. Whatever else is under way only makes it longer.

#include <map>

#include "sim/cluster.hpp"
#include "sim/execution.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

struct LeastTime {
  double busy = 0;                            ///< s per iteration of the busiest queue or link
  double cycle = 0;                           ///< s that the longest cycle takes
  int lag = 1;                                ///< iterations that it spans
  std::map<DeviceId, double> computing = {};  ///< s per iteration that a device computes, on its busiest queue

  /// s per iteration of a long run.
  double iteration() const;
  /// s for so many iterations.
  double total(double iterations) const;
};

/// Of a graph without quorums and without a common pool of steps. Without an engine as if communication were free.
/// `even`: nothing but devices and links tells ranks apart (no noise, no slow workers). Throws what NetworkPlan does.
LeastTime least_time(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine* engine,
                     const CommunicationCosts& costs, bool even);

}  // namespace epocast
