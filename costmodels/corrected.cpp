#include "costmodels/corrected.hpp"

#include <algorithm>
#include <utility>

namespace epocast {

TimeCorrection read_correction(const ConfigNode& compute) {
  const TimeCorrection none;
  return {.scale = compute.get("scale", none.scale, {kLeastTimeScale, kMostTimeScale}),
          .kernel_overhead = compute.get("kernel_overhead", none.kernel_overhead, {0, 1}),
          .step_overhead = compute.get("step_overhead", none.step_overhead, {0, 1000})};
}

Corrected::Corrected(std::unique_ptr<CostModel> inner, const Model& model, TimeCorrection correction,
                     UpdateKernels update_kernels)
    : inner_(std::move(inner)), correction_(correction), update_kernels_(update_kernels) {
  const auto first = std::ranges::find_if(model.layers, [](const Layer& l) { return l.kind != LayerKind::input; });
  if (first != model.layers.end()) first_layer_ = first->name;
}

PassTimes Corrected::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  PassTimes times = inner_->times(layer, batch, device);
  const double updates = update_kernels_.fused() ? update_kernels_.share(layer) : 1;
  for (const auto& [t, kernels] : {std::pair{&times.forward, 1.0},
                                   {&times.backward_data, 1.0},
                                   {&times.backward_weights, 1.0},
                                   {&times.update, updates}})
    if (t->value > 0) *t = correction_.scale * *t + kernels * correction_.kernel_overhead;
  if (layer.name == first_layer_) {
    times.forward += correction_.step_overhead;
    times.once += correction_.step_overhead;
  }
  return times;
}

}  // namespace epocast
