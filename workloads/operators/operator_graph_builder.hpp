#pragma once
// From a model to the dataflow graph of one training step, at the level of TensorFlow 1's graphs.

#include "sim/memory.hpp"
#include "sim/model.hpp"
#include "sim/operator_graph.hpp"

namespace epocast {

/// How a program gets from the loss to updates.
enum class GradientUse {
  minimize,  ///< Optimizer.minimize: gradients of one operation wait for each other
  direct,    ///< tf.gradients, applied as they are
  clipped,   ///< tf.gradients, scaled down where their global norm is too large
};

/// Throws std::invalid_argument with the nearest name as a hint.
GradientUse parse_gradient_use(const std::string& word);

struct OperatorGraphOptions {
  Optimizer optimizer = Optimizer::sgd;
  GradientUse gradients = GradientUse::minimize;
  bool weight_decay = false;   ///< the squares of weights are part of the loss
  bool fused_norms = false;    ///< batch normalisation is one operation, as tf.layers has it
  bool fused_kernels = false;  ///< fuse_kernels()
};

/// Every layer's forward operations (docs/models.md lists them by kind; recurrent layers are unrolled), their gradients
/// operation by operation, and one update of every variable; also what initialises, saves and restores variables
/// (OperatorPhase::setup), and what nobody needs, such as gradients of constants (OperatorPhase::unused). FLOP of a
/// layer's forward and backward pass are those of the model, divided over its operations by the work that each does.
/// fp32. REQUIRES batch >= 1. Throws ConfigError for layers whose operations are not known: rms_norm and layer_norm
/// without shift, rotary, swiglu, experts, shared heads of keys and values, learned positions before a sequence.
OperatorGraph build_operator_graph(const Model& model, std::int64_t batch, const OperatorGraphOptions& options);

}  // namespace epocast
