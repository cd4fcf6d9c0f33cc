#pragma once
// The kernels that a layer amounts to where it was not measured as a whole: matrix products, convolutions and memory
// traffic of attention and recurrent layers.
//
// linear: one product of all positions of the batch. attention: a batched product for the scores and one for the
// weighted sum, a softmax between them; backward four products (Vaswani et al. 2017; fused: the scores once more, Dao
// et al. 2022, and no softmax in memory). lstm: a product of all inputs, and a recurrent kernel over the sequence
// (Appleyard et al. 2016). e3d_lstm: convolutions of input and states, two products of its recall, and its gates (Wang
// et al. 2019).
//
// Scope and limits: products have the FLOP that the model's layer counts (tests/unit/layer_kernels_test.cpp); sums over
// gates and the like are memory traffic, or contained in a measured recurrent kernel. Causal attention computes its
// half only.

#include <vector>

#include "costmodels/kernel_shape.hpp"

namespace epocast {

struct LayerKernel {
  KernelShape shape;
  double repeats = 1;  ///< one after the other
};

/// REQUIRES: pass is not KernelPass::backward. Empty if the layer runs none.
std::vector<LayerKernel> layer_kernels(const Layer& layer, std::int64_t batch, KernelPass pass);

}  // namespace epocast
