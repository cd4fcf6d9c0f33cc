#pragma once
// Im2col: convolutions as matrix products of a library, with their input laid out as columns before and after, as
// CPU frameworks did that called a BLAS (Caffe; Lee 2020, 3.1, equations 3.1 to 3.5).
//
// Three products and three changes of layout for each convolution and batch, whatever the batch's size: forward lays
// out the input (im2col) and multiplies by the weights; the input's gradient is a product that is added back into image
// form (col2im); the weights' gradient lays out the input again and multiplies. A 1x1 convolution of stride 1 needs no
// layout. Products take what the calibration's fit to measured matrix products gives for their sides, so that small
// batches cost what small products cost; layouts read and write their data once each at `memory_efficiency` of the
// calibration's memory bandwidth. All other layers are as in `fitted`. With a `core_bandwidth`, layouts and the loops
// of other layers are parallel over the images of the batch, as with `omp parallel for` around the loop for one image,
// and no core moves data faster than that. So a batch of fewer images than cores leaves memory bandwidth unused.
//
// Scope and limits: fp32; the columns of a whole batch may exceed the device's memory, which is not checked (a
// framework would go through the batch in pieces large enough for the product). caveats() are those of `fitted` for the
// products. Validation: tests/unit/im2col_test.cpp; `epocast reproduce lee2020`. Reference: Chellapilla, Puri, Simard
// 2006, "High performance convolutional neural networks for document processing".

#include <string>
#include <vector>

#include "costmodels/fitted.hpp"

namespace epocast {

struct Im2colOptions {
  double memory_efficiency = 0.8;  ///< of changes of layout; engineering estimate as in the roofline
  BytesPerSecond core_bandwidth;   ///< of one core in loops over images; 0: the whole device's
  Optimizer optimizer = Optimizer::sgd;
  UpdateKernels update_kernels = {};
};

class Im2col : public CostModel {
 public:
  /// Throws ConfigError as Fitted does, and at `name` if the calibration has no fit of matrix products.
  Im2col(ComputeCalibration calibration, const ConfigNode& name, const Im2colOptions& options, const Model& model,
         const Device& device);

  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override;
  std::vector<std::string> caveats(std::int64_t batch) const override;

 private:
  Seconds loop_over_images(Bytes moved, std::int64_t batch, const Device& device) const;
  Seconds loop_over_images(const Layer& layer, std::int64_t batch, KernelPass pass, const Device& device) const;
  /// One matrix product of each of the layer's groups, C (m x n) = A (m x k) B (k x n).
  Seconds products(const Layer& layer, const GemmShape& shape, KernelPass pass) const;

  ComputeCalibration calibration_;
  std::string name_;
  Fitted others_;
  Im2colOptions options_;
};

}  // namespace epocast
