#pragma once
// Corrected: another cost model's times, times a factor, plus overheads that no kernel shows.
//
// Scope and limits: the same factor for all layers and passes; the same overhead for every pass that takes any time,
// and one for every batch that a worker runs through the network (charged to the forward pass of the first layer, where
// a framework fetches its batch, and not to a second forward pass of what was forgotten). Meant for constants that
// `epocast calibrate steps` fits. Validation: tests/unit/step_fit_test.cpp recovers known constants from simulated
// steps.

#include <memory>
#include <string>
#include <vector>

#include "costmodels/roofline.hpp"
#include "sim/config.hpp"
#include "sim/cost_model.hpp"

namespace epocast {

/// What a study may say of TimeCorrection::scale.
constexpr double kLeastTimeScale = 1e-3, kMostTimeScale = 1e3;

struct TimeCorrection {
  double scale = 1;
  Seconds kernel_overhead{0};
  Seconds step_overhead{0};
  bool operator==(const TimeCorrection&) const = default;
};

/// Reads `scale`, `kernel_overhead` and `step_overhead` of a study's `compute:` map. Throws ConfigError.
TimeCorrection read_correction(const ConfigNode& compute);

class Corrected : public CostModel {
 public:
  /// REQUIRES: `model` has a layer that computes; only its name is kept. Of fused updates all layers share one
  /// overhead.
  Corrected(std::unique_ptr<CostModel> inner, const Model& model, TimeCorrection correction,
            UpdateKernels update_kernels = {});

  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override;
  PassKernels kernels(const Layer& layer, std::int64_t batch) const override { return inner_->kernels(layer, batch); }
  bool knows_parts() const override { return inner_->knows_parts(); }
  bool loss_in_fp32() const override { return inner_->loss_in_fp32(); }
  std::string basis() const override { return inner_->basis(); }
  std::vector<std::string> caveats(std::int64_t batch) const override { return inner_->caveats(batch); }
  std::vector<std::string> device_caveats(const Device& device) const override {
    return inner_->device_caveats(device);
  }

 private:
  std::unique_ptr<CostModel> inner_;
  std::string first_layer_;
  TimeCorrection correction_;
  UpdateKernels update_kernels_;
};

}  // namespace epocast
