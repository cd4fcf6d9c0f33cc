#pragma once
// The passes over a network's layers that all data-parallel strategies share.

#include <vector>

#include "sim/task_graph.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

/// Tasks by layer of the trace; layers that take no time have none.
struct LayerTasks {
  std::vector<TaskId> tasks;      ///< in the order in which they run
  std::vector<int> position;      ///< by layer: index into `tasks` of its own task or else of the last one before it in
                                  ///< running order; -1 if there is none
};

/// Adds the forward pass of every layer to a program-order queue, first layer first.
LayerTasks add_forward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace);
/// Adds the backward pass of every layer, last layer first.
LayerTasks add_backward(CyclicTaskGraph& graph, QueueId compute, const WorkloadTrace& trace);

}  // namespace epocast
