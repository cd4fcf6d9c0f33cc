#include "costmodels/nominal_scaling.hpp"

#include <fmt/format.h>

#include <utility>

namespace epocast {

NominallyScaled::NominallyScaled(std::unique_ptr<CostModel> measured, std::string name, const Device& device)
    : measured_(std::move(measured)), name_(std::move(name)), device_(device), nominal_(RooflineOptions{}) {}

PassTimes NominallyScaled::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  PassTimes times = measured_->times(layer, batch, device_);
  if (same_kind(device, device_)) return times;
  const PassTimes here = nominal_.times(layer, batch, device), there = nominal_.times(layer, batch, device_);
  // An update only moves data, and so does a pass that the roofline does not know.
  const double moving = device_.memory_bandwidth / device.memory_bandwidth;
  for (const auto pass : {&PassTimes::forward, &PassTimes::backward_data, &PassTimes::backward_weights})
    times.*pass *= (there.*pass).value > 0 ? here.*pass / there.*pass : moving;
  times.update *= moving;
  return times;
}

std::vector<std::string> NominallyScaled::device_caveats(const Device& device) const {
  if (same_kind(device, device_)) return {};
  return {fmt::format("times on {} are scaled from those on {} ({}) by nominal rates, not measured", device.model,
                      device_.model, name_)};
}

}  // namespace epocast
