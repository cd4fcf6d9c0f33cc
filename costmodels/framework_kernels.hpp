#pragma once
// Which kernels a framework runs for what is no product: a choice of its programs, not of the network.
//
// Keys of a study's `compute` (cost model `fitted`), whose defaults a software stack may set:
//
//     loss: framework | vocabulary_parallel | fused
//     attention: fused_softmax | eager | compiled
//     gelu: fused | eager
//     batch_norm: separate | fused
//     autocast: false
//     metrics: 0
//
// What they move is in layer_kernels.hpp. Validation: tests/unit/layer_kernels_test.cpp,
// experiments/reproduce/measured_runs/h100_kernels.yaml and a100_mpt.yaml.

#include <string>
#include <vector>

#include "sim/config.hpp"
#include "sim/memory.hpp"

namespace epocast {

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
  compiled,  ///< heads copied side by side; all that is element-wise in the kernels of the sums, as a sum ends what XLA
             ///< fuses (assumed): maximum, sum, quotient; backward a sum and the rest
};

/// By which kernels a GELU is worked out.
enum class GeluKernels {
  fused,  ///< one for each pass
  eager,  ///< one for each operation of its approximation by a hyperbolic tangent, whose cube autocast takes in fp32
          ///< (huggingface/transformers, activations.py: NewGELUActivation; google-research/bert, modeling.py)
};

/// By which kernels a batch normalisation and what follows it are worked out.
enum class BatchNormKernels {
  separate,  ///< a normalisation, a sum and a ReLU by a kernel each
  fused,     ///< by one for each pass, over channels last (cuDNN's CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION; MXNet's
             ///< BatchNormAddRelu; TensorFlow's _FusedBatchNormEx)
};

struct FrameworkKernels {
  LossKernels loss = LossKernels::framework;
  AttentionKernels attention = AttentionKernels::fused_softmax;
  GeluKernels gelu = GeluKernels::fused;
  BatchNormKernels batch_norm = BatchNormKernels::separate;
  /// PyTorch's: norms, softmaxes and sums of branches between norms are fp32, and cast for the products that read them.
  bool autocast = false;
  /// How often the loss is worked out once more in a forward pass, as LossKernels::framework does, for metrics.
  int metrics = 0;
};

/// The keys above.
std::vector<std::string> framework_kernel_keys();
/// As far as `options` has them. Throws ConfigError.
FrameworkKernels read_framework_kernels(const ConfigNode& options);

/// What differs from the defaults, for people: "eager attention, autocast"; empty if nothing does.
std::string in_words(const FrameworkKernels& kernels);

/// A study's `optimizer.accesses`, of each parameter's values in an update: a count, `foreach`, or `fused`, which is 0
/// here and as many as optimizer_accesses() says. Throws ConfigError.
int read_update_accesses(const ConfigNode& accesses, Optimizer optimizer);

/// These throw std::invalid_argument.
LossKernels parse_loss_kernels(const std::string& name);
AttentionKernels parse_attention_kernels(const std::string& name);
GeluKernels parse_gelu_kernels(const std::string& name);
BatchNormKernels parse_batch_norm_kernels(const std::string& name);

}  // namespace epocast
