#pragma once
// Which activations must stay in memory from forward to backward.

#include <vector>

#include "workloads/layer_reader.hpp"

namespace epocast {

/// Sets keeps_output, backward_reads_*, needs_gradient and stored_in of every layer. An output is kept if backward
/// reads it: as the input of a consumer (convolution, fully connected, batch and local response normalisation, max
/// pooling) or as the layer's own output (activations, softmax, local response normalisation). An activation overwrites
/// its input where it is the only reader and the writer does not need it, so that one copy is kept for both. Flatten is
/// a view: what its consumers need is kept in its producer. The last layer's output is kept for the loss. Masks of
/// dropout and indices of max pooling are left out, and so is what only a layer without a backward pass would need.
void mark_kept_outputs(std::vector<LayerSpec>& layers);

}  // namespace epocast
