#pragma once
// Which layers of a network are in the kernel of a batch normalisation (BatchNormKernels::fused).
//
// Scope and limits: by the network's structure alone; whether a library has the kernel for a size is not asked.

#include <vector>

#include "sim/model.hpp"

namespace epocast {

/// What of a kernel that normalises, adds and rectifies is a layer's (BatchNormKernels::fused).
enum class FusedNorm {
  no,            ///< the layer runs kernels of its own
  alone,         ///< a normalisation, with nothing behind it in its kernel
  with_relu,     ///< with the ReLU behind it
  with_sum,      ///< with the sum behind it, and its ReLU
  part_of_norm,  ///< the ReLU, or the forward pass of the sum: in the normalisation's kernel
};

/// Of each layer of a network. A sum and its ReLU are in the kernel of the last normalisation that it adds.
std::vector<FusedNorm> fused_norms(const Model& model);

}  // namespace epocast
