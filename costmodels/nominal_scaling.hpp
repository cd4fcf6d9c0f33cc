#pragma once
// NominallyScaled: times measured on one kind of device, carried over to others by their nominal rates.
//
// Scope and limits: on the device that was measured, the measured model's times as they are. On another, each pass of
// each layer takes longer or shorter by the ratio of the roofline's times (its default efficiencies) on the two, and an
// update by that of their memory bandwidths. What the other device's libraries make of its rates is not known, so
// caveats name it. Validation: a device of a third of the rates takes three times as long
// (tests/unit/unequal_devices_test.cpp).

#include <memory>
#include <string>
#include <vector>

#include "costmodels/roofline.hpp"
#include "sim/cost_model.hpp"

namespace epocast {

class NominallyScaled : public CostModel {
 public:
  /// `measured` holds on `device`; `name` is what messages call its data, as in "timings 'v100'". Copies the device.
  NominallyScaled(std::unique_ptr<CostModel> measured, std::string name, const Device& device);

  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override;
  PassKernels kernels(const Layer& layer, std::int64_t batch) const override {
    return measured_->kernels(layer, batch);
  }
  bool knows_parts() const override { return measured_->knows_parts(); }
  bool loss_in_fp32() const override { return measured_->loss_in_fp32(); }
  std::string basis() const override { return measured_->basis().empty() ? name_ : measured_->basis(); }
  std::vector<std::string> caveats(std::int64_t batch) const override { return measured_->caveats(batch); }
  std::vector<std::string> device_caveats(const Device& device) const override;

 private:
  std::unique_ptr<CostModel> measured_;
  std::string name_;
  Device device_;
  Roofline nominal_;
};

}  // namespace epocast
