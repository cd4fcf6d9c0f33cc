#pragma once
// A placed operator graph as a cyclic task graph, for the simulator of networks: the replay's own links know nothing of
// topologies.
//
// Every device has a queue for its nodes and one for what it sends, both first in, first out; an output goes to each
// device that reads all of it once (replay.hpp). Nodes without time do not queue. The next iteration begins when all of
// this one has ended, as a session's runs do. Replicas, each on devices of its own, add up the gradients that updates
// read, on the device of the update, each as soon as it is there.

#include <span>
#include <string>
#include <vector>

#include "sim/strategy.hpp"
#include "sim/task_graph.hpp"
#include "strategies/placement/placement_graph.hpp"

namespace epocast {

struct PlacedStepOptions {
  std::span<const std::string> names = {};  ///< of nodes, for labels; may be empty
  std::span<const DeviceTime> times = {};   ///< of nodes, where they depend on the device; if empty, the graph's
  /// By node; replicas add up what updates read of the backward pass. If empty, nothing is added up.
  std::span<const OperatorPhase> phases = {};
  CollectiveSettings collective = {};  ///< by which that is done
};

/// `devices`: by device of the placement, one for each replica. REQUIRES at least as many as the placement uses, and
/// equally many replicas for each.
CyclicTaskGraph placed_step(const PlacementGraph& graph, const Placement& placement,
                            const std::vector<std::vector<DeviceId>>& devices, const PlacedStepOptions& options = {});

}  // namespace epocast
