#pragma once
// Fitted: each kernel takes the time that a model fitted to measured kernels of the same device gives it.
//
// Scope and limits: the device, precision, library and version of the calibration. Convolutions and fully connected
// layers use the fits of their operator and pass; where a profile measured both gradients as one, each gets half.
// Attention and recurrent layers are made of products, convolutions and recurrent kernels (layer_kernels.hpp) unless
// they were measured as wholes; without a fit of recurrent kernels each step is a product. Fused attention whose
// backward pass was not measured has 0.86 of the forward rate there (assumed). Other layers are bound by memory: their
// own fit if they were measured, else 5 us of overhead (engineering estimate) plus their bytes at 0.8 of the memory
// bandwidth, as in the roofline. With fp8, attention between its projections and all that is not a product is as in
// bf16. Rates are the calibration's, not the platform's; caveats() says when they differ, when a layer lies far from
// all measured shapes, and when the calibration is scaled from another device. Validation: docs/calibration.md,
// tests/published/calibration_test.cpp, tests/published/half_precision_test.cpp. Reference: kernel_formula.hpp.

#include <map>
#include <string>
#include <vector>

#include "costmodels/compute_calibration.hpp"
#include "costmodels/layer_kernels.hpp"
#include "costmodels/roofline.hpp"
#include "sim/cost_model.hpp"
#include "sim/memory.hpp"

namespace epocast {

struct FittedSettings {
  double product_rate = 1;  ///< by how much products and attention are faster than on the device measured
  double memory_rate = 1;   ///< kernels that only move data, and updates
  FrameworkKernels framework = {};
};

class Fitted : public CostModel {
 public:
  /// Copies what it needs of the model and device, for caveats. Throws ConfigError if the calibration, called `name` in
  /// messages, lacks an operator that the model has.
  Fitted(ComputeCalibration calibration, std::string name, Optimizer optimizer, const Model& model,
         const Device& device, UpdateKernels update_kernels = {}, FittedSettings settings = {});

  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override;
  PassKernels kernels(const Layer& layer, std::int64_t batch) const override;
  bool loss_in_fp32() const override;
  std::string basis() const override;
  std::vector<std::string> caveats(std::int64_t batch) const override;
  /// Applying the gradients of all of the layer's parameters.
  Seconds update(const Layer& layer) const;

 private:
  FlopPerSecond nominal_rate() const;  ///< of the calibration's chip
  double least_time(const KernelFit& fit, const KernelWork& work) const;
  Seconds time(const KernelShape& kernel) const;
  Seconds time(const Layer& layer, std::int64_t batch, KernelPass pass) const;
  std::vector<LayerKernel> kernels_of(const Layer& layer, std::int64_t batch, KernelPass pass) const;

  ComputeCalibration calibration_;
  std::string name_;
  Optimizer optimizer_;
  UpdateKernels update_kernels_;
  FittedSettings settings_;
  Model model_;
  bool has_norms_ = false;
  std::map<std::string, FusedNorm> fused_norms_;  ///< by layer; empty where each has kernels of its own
  Device device_;
};

}  // namespace epocast
