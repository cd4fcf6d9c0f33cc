#include "costmodels/corrected.hpp"

#include <algorithm>
#include <utility>

namespace epocast {

TimeCorrection read_correction(const ConfigNode& compute) {
  const TimeCorrection none;
  return {.scale = compute.get("scale", none.scale, {1e-3, 1e3}),
          .kernel_overhead = compute.get("kernel_overhead", none.kernel_overhead, {0, 1}),
          .step_overhead = compute.get("step_overhead", none.step_overhead, {0, 1000})};
}

Corrected::Corrected(std::unique_ptr<CostModel> inner, const Model& model, TimeCorrection correction)
    : inner_(std::move(inner)), correction_(correction) {
  const auto first = std::ranges::find_if(model.layers, [](const Layer& l) { return l.kind != LayerKind::input; });
  if (first != model.layers.end()) first_layer_ = first->name;
}

PassTimes Corrected::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  PassTimes times = inner_->times(layer, batch, device);
  for (Seconds* t : {&times.forward, &times.backward_data, &times.backward_weights, &times.update})
    if (t->value > 0) *t = correction_.scale * *t + correction_.kernel_overhead;
  if (layer.name == first_layer_) times.forward += correction_.step_overhead;
  return times;
}

}  // namespace epocast
