#pragma once
// FLOP of each pass of a layer, per sample.
//
// A multiply-add counts 2; a comparison, addition, exponential or root counts 1. Adding a convolution's or a
// fully connected layer's bias is not counted, as is usual in published figures. Convolutions and fully connected
// layers (linear too) do the same work in all three passes. Derivations of the others stand beside their numbers in
// layer_cost.cpp.

#include "sim/model.hpp"

namespace epocast {

/// Sets the three FLOP counts of `layer` from its kind, shapes, kernel and groups; leaves attention and recurrent
/// layers as they are. `input_needs_gradient` is whether anything upstream is trained; if not, backward_data_flop is 0.
/// `work_per_output` [FLOP] is that of pooling, local response normalisation, activation, dropout, embeddings and
/// regions (see layer_reader.cpp).
void set_flop(Layer& layer, bool input_needs_gradient, double work_per_output);

}  // namespace epocast
