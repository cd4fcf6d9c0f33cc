#pragma once
// Roofline: a kernel takes its launch overhead plus the longer of computing and moving its data.
//
//     time = overhead + max(FLOP / (efficiency * peak rate), bytes / (memory_efficiency * memory bandwidth))
//
// Scope and limits: one efficiency for every layer, so that small or oddly shaped layers come out too fast; no cache,
// no fusion of element-wise layers into their neighbours, no framework overhead. Good for comparing networks and for
// splitting a measured step among layers (step_time); use measured timings for absolute times. Bytes of a pass: input,
// output and parameters once each. In other precisions than fp32 layers that multiply matrices have that rate, all
// others the fp32 rate. Backward passes read the output's gradient, read what forward kept and write a
// gradient: the same counts. A recurrent layer is one kernel per step that reads all parameters; an embedding reads the
// rows that it looks up. Validation: medians of achieved over peak fp32 rate of 94 training convolutions (DeepBench,
// latest stacks; forward, backward data, backward weights): Xeon Phi 7250 0.61 0.53 0.48, V100 0.65 0.61 0.46, P100
// 0.58 0.43 0.41. Reference: Williams, Waterman, Patterson 2009, "Roofline: an insightful visual performance model".

#include "sim/cost_model.hpp"
#include "sim/memory.hpp"

namespace epocast {

/// Into how many kernels the update of a model's parameters is divided, and what these move.
///
/// The optimizers of PyTorch on GPUs work on lists of tensors (foreach, fused: documentation of torch.optim, "By
/// default, ... foreach"; Apex' multi_tensor_apply): a few kernels for a whole step, here one, of which every layer has
/// its parameters' share. TensorFlow 1, Caffe and PyTorch on CPUs start one for each tensor.
class UpdateKernels {
 public:
  /// One for each tensor.
  UpdateKernels() = default;
  /// One for all parameters.
  explicit UpdateKernels(const Model& model) : parameters_(model.trained_count()) {}

  /// How often an update reads and writes a parameter's values, where not as a fused one (optimizer_accesses).
  void set_accesses(int accesses) { accesses_ = accesses; }
  bool by_operation() const { return accesses_ > 0; }
  int accesses(Optimizer optimizer) const { return accesses_ > 0 ? accesses_ : optimizer_accesses(optimizer); }

  bool fused() const { return parameters_ > 0; }
  /// Parameters that one kernel updates. REQUIRES: fused().
  std::int64_t parameters() const { return parameters_; }
  /// The layer's share of them. REQUIRES: fused().
  double share(const Layer& layer) const {
    return static_cast<double>(layer.parameter_count()) / static_cast<double>(parameters_);
  }
  /// Kernels that the layer's update launches; its share of one if it is fused.
  double launches(const Layer& layer) const {
    return fused() ? share(layer) : static_cast<double>(layer.parameters.size());
  }

 private:
  std::int64_t parameters_ = 0;
  int accesses_ = 0;
};

struct RooflineOptions {
  double efficiency = 0.5;         ///< of the peak rate; DeepBench medians above lie between 0.41 and 0.65
  double memory_efficiency = 0.8;  ///< of the memory bandwidth; engineering estimate, STREAM reaches 0.75 to 0.9
  Seconds overhead{10e-6};         ///< per kernel; engineering estimate for a framework's launch
  Optimizer optimizer = Optimizer::sgd;
  UpdateKernels update_kernels = {};
  Precision precision = Precision::fp32;  ///< of matrix products and of what is stored
};

class Roofline : public CostModel {
 public:
  explicit Roofline(RooflineOptions options) : options_(options) {}
  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override;

 private:
  RooflineOptions options_;
};

/// Time to read and write parameters, gradients and optimizer state once each as the optimizer needs (see
/// optimizer_accesses), at this fraction of the device's memory bandwidth. Throws ConfigError if that is unknown.
Seconds update_time(const Layer& layer, const Device& device, int accesses, double memory_efficiency);

}  // namespace epocast
