#pragma once
// The kernels that a layer amounts to where it was not measured as a whole: matrix products, convolutions and memory
// traffic of attention and recurrent layers.
//
// linear: one product of all positions of the batch; of experts as many side by side as there are. attention: a batched
// product for the scores and one for the weighted sum, a softmax between them; backward four products (Vaswani et al.
// 2017; fused: the scores once more, Dao et al. 2022, and no softmax in memory), or a single kernel for each pass where
// such kernels were measured. lstm: a product of all inputs, and a recurrent kernel over the sequence (Appleyard et al.
// 2016), which reads all weights in each step, and where features come back from later layers their product in each
// step. Transposed convolutions run the kernels of the convolution that they are the gradient of: forward its
// backward_data, and backward its forward. e3d_lstm: convolutions of input and states, two products of its recall, and
// its gates (Wang et al. 2019).
//
// Traffic::layers counts what a layer reads and writes, input and output once each: so fp32 kernels were measured.
// Traffic::kernels counts every access of the kernels that training on matrix units runs: gradients of activations and
// norms read two tensors and write one, where branches join gradients are added, masks of dropout have a byte per
// value, gradients of biases read all outputs, and the loss makes the passes of LossKernels. Casts fall away where all
// is stored in fp32 (tf32).
//
// Scope and limits: products have the FLOP that the model's layer counts (tests/unit/layer_kernels_test.cpp); sums over
// gates and the like are memory traffic, or contained in a measured recurrent kernel. Causal attention computes its
// half only.

#include <string>
#include <vector>

#include "costmodels/kernel_shape.hpp"
#include "sim/precision.hpp"

namespace epocast {

struct LayerKernel {
  KernelShape shape;
  double repeats = 1;  ///< one after the other
};

enum class Traffic { layers, kernels };

/// By which kernels the cross-entropy of logits is worked out.
enum class LossKernels {
  framework,  ///< cast to fp32, log-softmax; backward: gradients zeroed, softmax, cast (PyTorch under autocast)
  vocabulary_parallel,  ///< in fp32: cast, maximum, subtract, exponential, sum, divide; backward: scaled twice, cast
                        ///< (Shoeybi et al. 2019; megatron/core/tensor_parallel/cross_entropy.py)
  fused,                ///< one kernel for each pass, in the format of the logits (flash-attn's CrossEntropyLoss)
};

/// By which kernels attention works out softmaxes that go through memory.
enum class AttentionKernels {
  fused_softmax,  ///< heads read where they are; scale, mask and softmax in one kernel (Megatron-LM)
  eager,  ///< heads copied side by side; scores scaled, masked and normalised by a kernel each (Devlin et al. 2019 in
          ///< PyTorch: NVIDIA/DeepLearningExamples, huggingface/transformers)
};

/// By which kernels a GELU is worked out.
enum class GeluKernels {
  fused,  ///< one for each pass
  eager,  ///< one for each operation of its approximation by a hyperbolic tangent, whose cube autocast takes in fp32
          ///< (huggingface/transformers, activations.py: NewGELUActivation; google-research/bert, modeling.py)
};

std::vector<std::string> loss_kernel_names();
std::vector<std::string> attention_kernel_names();
std::vector<std::string> gelu_kernel_names();
/// All throw std::invalid_argument.
LossKernels parse_loss_kernels(const std::string& name);
AttentionKernels parse_attention_kernels(const std::string& name);
GeluKernels parse_gelu_kernels(const std::string& name);

/// How layers become kernels.
struct KernelStyle {
  Traffic traffic = Traffic::layers;
  bool fused_attention = false;  ///< a fused attention layer is one kernel in each pass, KernelPass::backward included
  double value_bytes = 2;        ///< of an access, with Traffic::kernels: 2 or 4
  LossKernels loss = LossKernels::framework;
  AttentionKernels attention = AttentionKernels::fused_softmax;
  GeluKernels gelu = GeluKernels::fused;
  /// PyTorch's autocast: norms and softmaxes are fp32, and cast back for the products that read them; sums of branches
  /// between norms are fp32, as embeddings are.
  bool autocast = false;
  bool has_norms = false;  ///< the network, which makes its sums such
  /// How often the logits' cross-entropy is worked out once more in a forward pass, as a framework does: metrics.
  int metrics = 0;
};

/// In fp32 layers move what they read and write; in all other formats kernels do.
KernelStyle kernel_style(Precision precision, bool fused_attention);

/// The convolution of a batch that a convolutional layer is. Slices that a kernel covers count as further channels: the
/// same products. A transposed layer is a convolution from its output to its input.
/// REQUIRES: a convolution, or another layer whose sizes mean the same.
ConvolutionShape convolution_shape(const Layer& layer, std::int64_t batch);

/// REQUIRES: pass is not KernelPass::backward. Empty if the layer runs none.
std::vector<LayerKernel> layer_kernels(const Layer& layer, std::int64_t batch, KernelPass pass,
                                       const KernelStyle& style = {});

}  // namespace epocast
