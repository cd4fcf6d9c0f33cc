#pragma once
// Gradient rules as in TensorFlow 1.14's math_grad.py, array_grad.py and nn_grad.py: which nodes they add, constants
// and computations of shapes included.

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/operators/dataflow.hpp"

namespace epocast {

/// What a rule sees: an operation, the gradients of its outputs, and which inputs are of interest.
struct GradientContext {
  Dataflow& graph;
  std::int32_t node;
  const Tensors& in;
  const Tensors& grads;           ///< by output
  const std::vector<bool>& used;  ///< by input: whether anything trained is upstream

  const Tensor& g() const { return grads.front(); }
  Tensor out(int output = 0) const { return graph.output_of(node, output); }
  double work() const { return graph.nodes()[static_cast<std::size_t>(node)].work; }
};

/// Gives the gradient of each input; none where there is none.
using GradientRule = Tensors (*)(const GradientContext&);

/// The rule for an operation of this type; null if there is none.
GradientRule find_gradient_rule(const std::string& type);

/// Operations that gradients do not pass, whatever they read.
bool stops_gradients(const std::string& type);

}  // namespace epocast
