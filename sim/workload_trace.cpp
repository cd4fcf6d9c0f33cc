#include "sim/workload_trace.hpp"

#include <algorithm>

namespace epocast {

Bytes LayerTrace::gradient_bytes() const {
  Bytes sum;
  for (const GradientTensor& tensor : gradients) sum += tensor.bytes;
  return sum;
}

Bytes WorkloadTrace::gradient_bytes() const {
  Bytes sum;
  for (const auto& layer : layers) sum += layer.gradient_bytes();
  return sum;
}

double WorkloadTrace::gradient_value_bytes() const {
  const Bytes parameters = parameter_bytes();
  return bytes_per_value(precision) * (parameters.value > 0 ? gradient_bytes() / parameters : 1);
}

Bytes WorkloadTrace::parameter_bytes() const {
  Bytes sum;
  for (const auto& layer : layers) sum += layer.parameters;
  return sum;
}

Bytes WorkloadTrace::kept_activation_bytes() const {
  Bytes sum;
  for (const auto& layer : layers) sum += layer.kept_activations;
  return sum;
}

bool WorkloadTrace::goes_back() const {
  return std::ranges::any_of(layers, [](const LayerTrace& layer) { return layer.needs_gradient; });
}

DeviceTime WorkloadTrace::compute_time() const {
  DeviceTime sum;
  for (const auto& layer : layers) sum += layer.times.total();
  return sum;
}

WorkloadTrace TraceSource::operator()(std::int64_t batch, const std::shared_ptr<const DeviceKinds>& devices) const {
  if (!devices) return on_device_(batch, 0);
  std::vector<WorkloadTrace> by_kind;
  for (const DeviceId example : devices->examples()) by_kind.push_back(on_device_(batch, example));
  WorkloadTrace out = by_kind.front();
  if (by_kind.size() == 1) return out;
  for (std::size_t l = 0; l < out.layers.size(); ++l)
    out.layers[l].times = each_pass([&](DeviceTime LayerTimes::*pass) {
      return DeviceTime::each(
          devices, [&](DeviceId device) { return (by_kind[devices->of(device)].layers[l].times.*pass).on(device); });
    });
  return out;
}

}  // namespace epocast
