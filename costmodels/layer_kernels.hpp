#pragma once
// The kernels that a layer amounts to where it was not measured as a whole: matrix products, convolutions and memory
// traffic of attention and recurrent layers.
//
// linear: one product of all positions of the batch; of experts as many side by side as there are. attention: a batched
// product for the scores and one for the weighted sum, a softmax between them; backward four products (Vaswani et al.
// 2017; fused: the scores once more, Dao et al. 2022, and no softmax in memory), or a single kernel for each pass where
// such kernels were measured; or each operation by itself (framework_kernels.hpp). lstm: a product of all inputs, and a
// recurrent kernel over the sequence (Appleyard et al. 2016), which reads all weights in each step, and where features
// come back from later layers their product in each step. Transposed convolutions run the kernels of the convolution
// that they are the gradient of: forward its backward_data, and backward its forward. e3d_lstm: convolutions of input
// and states, two products of its recall, and its gates (Wang et al. 2019).
//
// Traffic::layers counts what a layer reads and writes, input and output once each: so fp32 kernels were measured.
// Traffic::kernels counts every access of the kernels that training on matrix units runs: gradients of activations and
// norms read two tensors and write one, where branches join gradients are added, masks of dropout have a byte per
// value, gradients of biases read all outputs, and the loss makes the passes of LossKernels. Casts fall away where all
// is stored in fp32 (tf32).
//
// Scope and limits: products have the FLOP that the model's layer counts (tests/unit/layer_kernels_test.cpp); sums over
// gates and the like are memory traffic, or contained in a measured recurrent kernel. Causal attention computes its
// half only, and a device of a context axis its share of that. Under autocast embeddings write fp32, which is not
// counted.

#include <algorithm>
#include <string>
#include <vector>

#include "costmodels/framework_kernels.hpp"
#include "costmodels/fused_norms.hpp"
#include "costmodels/kernel_shape.hpp"
#include "sim/precision.hpp"

namespace epocast {

struct LayerKernel {
  KernelShape shape;
  double repeats = 1;  ///< one after the other
  int launches = 1;    ///< of each: kernels that only move data may be timed together, by all of their bytes

  /// Kernels that the host starts; part of a repetition is a kernel of smaller size.
  double started() const { return launches * std::max(1.0, repeats); }
};

enum class Traffic { layers, kernels };

/// How layers become kernels.
struct KernelStyle {
  Traffic traffic = Traffic::layers;
  bool fused_attention = false;  ///< a fused attention layer is one kernel in each pass, KernelPass::backward included
  double value_bytes = 2;        ///< of an access, with Traffic::kernels: 2 or 4
  FrameworkKernels framework = {};       ///< in what is no product
  bool has_norms = false;                ///< the network: autocast then keeps its sums in fp32, as embeddings are
  FusedNorm fused_norm = FusedNorm::no;  ///< the layer
};

/// Whether a framework's program, and not the layer alone, says what a layer moves, in whatever format.
bool framework_decides(const Layer& layer, const KernelStyle& style);

/// In fp32 layers move what they read and write, but where a framework's kernels decide; in all other formats kernels
/// do.
KernelStyle kernel_style(Precision precision, bool fused_attention);

/// The convolution of a batch that a convolutional layer is. Slices that a kernel covers count as further channels: the
/// same products. A transposed layer is a convolution from its output to its input.
/// REQUIRES: a convolution, or another layer whose sizes mean the same.
ConvolutionShape convolution_shape(const Layer& layer, std::int64_t batch);

/// REQUIRES: pass is not KernelPass::backward. Empty if the layer runs none.
std::vector<LayerKernel> layer_kernels(const Layer& layer, std::int64_t batch, KernelPass pass,
                                       const KernelStyle& style = {});

}  // namespace epocast
