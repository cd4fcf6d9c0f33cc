#pragma once
// A placed operator graph as a cyclic task graph, for the simulator of networks: the replay's own links know nothing of
// topologies.
//
// Every device has a queue for its nodes and one for what it sends, both first in, first out; an output goes to each
// device that reads all of it once (replay.hpp). Nodes without time do not queue. The next iteration begins when all of
// this one has ended, as a session's runs do.

#include <span>
#include <string>
#include <vector>

#include "sim/task_graph.hpp"
#include "strategies/placement/placement_graph.hpp"

namespace epocast {

/// REQUIRES at least as many devices as the placement uses. `names` are those of nodes, for labels; may be empty.
CyclicTaskGraph placed_step(const PlacementGraph& graph, const Placement& placement,
                            const std::vector<DeviceId>& devices, std::span<const std::string> names = {});

}  // namespace epocast
