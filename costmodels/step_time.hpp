#pragma once
// StepTimeAnchored: scales another cost model so that one device's whole step takes a measured time.
//
// Scope and limits: what is measured is the sum of forward and backward passes and updates on the anchored device.
// Updates keep the inner model's times; a factor on the passes makes up the rest. So an update costs the same wherever
// it runs: a parameter server that takes it over takes that much from the worker's step, and no part of what frameworks
// add to passes. The inner model's shares of layers and passes are kept. With one point the factor is the same at every
// batch size. With several, the step time is linear in the batch between points and
// extrapolated outside (see interpolation.hpp), and each batch size has its own factor. Of a network
// whose layers are not known, passes take in proportion to the samples what they take at one point. The same factors
// apply on every device, with a caveat on those that are not of the anchored kind. Validation: the trace's compute time
// at an anchored batch size equals the given time (tests/unit/cost_model_test.cpp).

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "costmodels/interpolation.hpp"
#include "sim/config.hpp"
#include "sim/cost_model.hpp"

namespace epocast {

class StepTimeAnchored : public CostModel {
 public:
  /// `steps`: measured time [s] of forward, backward and update of the whole `model` on `device`, by batch size.
  /// Copies what it needs. REQUIRES at least one point. Throws ConfigError if the inner model gives the passes no time,
  /// or its updates alone take longer than a whole step.
  StepTimeAnchored(std::unique_ptr<CostModel> inner, const Model& model, const Device& device, TimeByBatch steps);

  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override;
  PassKernels kernels(const Layer& layer, std::int64_t batch) const override { return inner_->kernels(layer, batch); }
  bool knows_parts() const override { return inner_->knows_parts(); }
  bool loss_in_fp32() const override { return inner_->loss_in_fp32(); }
  std::string basis() const override { return inner_->basis(); }
  std::vector<std::string> caveats(std::int64_t batch) const override;
  std::vector<std::string> device_caveats(const Device& device) const override;

 private:
  struct Sums {
    Seconds update, passes;
  };
  Sums sums(std::int64_t batch) const;
  double factor(std::int64_t batch) const;
  double factor(std::int64_t batch, double step) const;

  std::unique_ptr<CostModel> inner_;
  Model model_;
  Device device_;
  TimeByBatch steps_;
  // Summing over all layers for each layer would be quadratic.
  mutable std::map<std::int64_t, double> factors_;
  mutable std::mutex mutex_;
};

/// Reads `{batch: 32, time: 1.9 s}` or a list of such. Throws ConfigError.
TimeByBatch read_step_times(const ConfigNode& node);

}  // namespace epocast
