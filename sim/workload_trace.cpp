#include "sim/workload_trace.hpp"

namespace epocast {

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
