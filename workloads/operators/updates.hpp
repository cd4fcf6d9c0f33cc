#pragma once
// What an optimizer adds to a dataflow graph.

#include "sim/memory.hpp"
#include "workloads/operators/dataflow.hpp"

namespace epocast {

/// Scales gradients by their global norm as tf.clip_by_global_norm does.
void add_clipping(Dataflow& graph, Tensors& gradients);

/// Slots, one update of each trained variable that has a gradient, and the group that waits for all of them.
void add_updates(Dataflow& graph, const Tensors& gradients, Optimizer optimizer);

}  // namespace epocast
