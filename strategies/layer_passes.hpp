#pragma once
// The passes over a network's layers that all data-parallel strategies share.

#include <functional>
#include <vector>

#include "sim/task_graph.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

/// The tasks of one pass. Layers that take no time in it have none.
struct LayerPass {
  std::vector<TaskId> tasks;  ///< in running order
  std::vector<std::size_t>
      position;  ///< by layer: index into `tasks` of its own, or of the nearest one that does its duty

  /// The task that stands for a layer. REQUIRES: some layer takes time.
  TaskId at(std::size_t layer) const { return tasks[position[layer]]; }
};

/// What a pass is part of, and what else goes on its queue.
struct PassOptions {
  int micro_batch = -1;                              ///< for labels; -1 if there is only one
  std::function<void(std::size_t layer)> hook = {};  ///< called before a layer's forward pass, after its backward pass
};

/// Adds the forward pass of every layer to a program-order queue, first layer first. For a layer that takes no time,
/// the next one that does stands: what has to be there for the layer has to be there for that one. Throws
/// SimulationError if no layer takes time.
LayerPass add_forward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace, const PassOptions& = {});

/// Adds the backward pass of every layer, last layer first; before that of a segment that forgot its activations, their
/// recomputation. For a layer that takes no time, the last one before it in
/// running order stands: when that has ended, the layer's gradients are there.
LayerPass add_backward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace, const PassOptions& = {});

/// Activations of the worker's batch that a layer reads, over all its inputs.
Bytes input_bytes(const WorkloadTrace& trace, std::size_t layer);

}  // namespace epocast
