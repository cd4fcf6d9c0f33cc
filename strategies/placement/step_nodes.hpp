#pragma once
// What a strategy places: a training step as nodes, which together take what the trace says of its layers.

#include <string>
#include <vector>

#include "sim/memory.hpp"
#include "sim/operator_graph.hpp"
#include "strategies/placement/placement_graph.hpp"

namespace epocast {

struct StepNodes {
  PlacementGraph graph;  ///< with the time on the slowest kind of device
  // By node.
  std::vector<DeviceTime> times;
  std::vector<std::string> names;
  std::vector<OperatorPhase> phases;
  std::vector<double> beside;  ///< bytes that a node needs all the time, beside what the graph says: copies in fp32
};

/// A node for each operation. A pass of a layer takes what the trace says, divided over its operations by what their
/// FLOP, or their bytes at 0.8 of the memory's bandwidth, would take on `device`, and 5 us each, as operator_times.hpp
/// has them; what belongs to no layer takes no time. Sizes are those of the trace's precision. REQUIRES the operations
/// of the trace's model and batch.
StepNodes operation_nodes(const OperatorGraph& operations, const WorkloadTrace& trace, const Device& device);

/// A node for each pass of each layer: forward, the gradient of its input, the gradient of its parameters, their
/// update; and for its parameters and the optimizer's state. REQUIRES a trace without recomputation.
StepNodes pass_nodes(const WorkloadTrace& trace, Optimizer optimizer);

}  // namespace epocast
