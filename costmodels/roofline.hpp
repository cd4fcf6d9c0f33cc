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

struct RooflineOptions {
  double efficiency = 0.5;         ///< of the peak rate; DeepBench medians above lie between 0.41 and 0.65
  double memory_efficiency = 0.8;  ///< of the memory bandwidth; engineering estimate, STREAM reaches 0.75 to 0.9
  Seconds overhead{10e-6};         ///< per kernel; engineering estimate for a framework's launch
  Optimizer optimizer = Optimizer::sgd;
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
Seconds update_time(const Layer& layer, const Device& device, Optimizer optimizer, double memory_efficiency);

}  // namespace epocast
