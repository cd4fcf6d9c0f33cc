#pragma once
// Reverse-mode differentiation of a dataflow graph, operation by operation as TensorFlow 1 does it.

#include "workloads/operators/dataflow.hpp"

namespace epocast {

/// Adds the backward pass from `loss` to all trained variables. Gives the gradient of each, in the order of
/// `graph.trained()`; one that the loss does not depend on has none. Where several consumers make a part, an AddN sums
/// them. `gated`: no gradient of an operation is used before all of them are there, as Optimizer.minimize asks for;
/// tf.gradients by itself does not. Throws std::logic_error for an operation without a rule.
Tensors add_gradients(Dataflow& graph, const Tensor& loss, bool gated);

}  // namespace epocast
