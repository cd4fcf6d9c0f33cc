#include "costmodels/roofline.hpp"

#include <algorithm>

namespace epocast {
namespace {

constexpr double kBytesPerValue = 4;  // fp32

/// Layers that are only another view of the same memory, or the data itself: no kernel runs.
bool runs_kernels(LayerKind kind) { return kind != LayerKind::input && kind != LayerKind::flatten; }

double require_rate(double rate, const char* what, const Device& device) {
  if (!(rate > 0))
    throw ConfigError("device '" + device.name + "' has no " + what +
                      ", which the roofline cost model needs; add it to the platform file");
  return rate;
}

}  // namespace

Seconds update_time(const Layer& layer, const Device& device, Optimizer optimizer, double memory_efficiency) {
  const double bytes = kBytesPerValue * optimizer_accesses(optimizer) * static_cast<double>(layer.parameter_count());
  if (bytes == 0) return Seconds(0);
  return Seconds(bytes / (memory_efficiency * require_rate(device.memory_bandwidth.value, "memory bandwidth", device)));
}

PassTimes Roofline::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  if (!runs_kernels(layer.kind)) return {};
  const double flop_rate = options_.efficiency * require_rate(device.peak_rate.value, "peak rate", device);
  const double byte_rate =
      options_.memory_efficiency * require_rate(device.memory_bandwidth.value, "memory bandwidth", device);
  const auto samples = static_cast<double>(batch);
  const double bytes = kBytesPerValue * (samples * static_cast<double>(layer.input_values + layer.output.values()) +
                                         static_cast<double>(layer.parameter_count()));
  const auto kernel = [&](double flop_per_sample) {
    return options_.overhead + Seconds(std::max(samples * flop_per_sample / flop_rate, bytes / byte_rate));
  };

  PassTimes times;
  times.forward = kernel(layer.forward_flop);
  // A concatenation's gradient is cut into its parts: no FLOP, but a copy.
  if (layer.backward_data_flop > 0 || layer.kind == LayerKind::concat)
    times.backward_data = kernel(layer.backward_data_flop);
  if (layer.backward_weights_flop > 0) times.backward_weights = kernel(layer.backward_weights_flop);
  times.update = options_.overhead * static_cast<double>(layer.parameters.size()) +
                 update_time(layer, device, options_.optimizer, options_.memory_efficiency);
  return times;
}

}  // namespace epocast
