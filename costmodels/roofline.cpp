#include "costmodels/roofline.hpp"

#include <algorithm>

namespace epocast {
namespace {

constexpr double kUpdateBytes = 4;  // an access of the optimizer: see optimizer_accesses

/// Layers that are only another view of the same memory, or the data itself: no kernel runs.
bool runs_kernels(LayerKind kind) { return kind != LayerKind::input && kind != LayerKind::flatten; }

/// Values per sample that a pass reads and writes. What attention or a recurrent layer makes on the way is written and
/// read again; if it never leaves the kernel, inner_values says so by being small.
double activation_accesses(const Layer& layer) {
  return static_cast<double>(layer.input_values + layer.output.values()) + 2 * static_cast<double>(layer.inner_values);
}

/// Of a table only the rows that are looked up; of everything else each parameter once a step, shared and fixed ones
/// too.
double parameters_read(const Layer& layer, double samples) {
  auto parameters = static_cast<double>(layer.weight_count());
  if (layer.tied_to >= 0) {
    const double taps =
        layer.kind != LayerKind::convolution
            ? 1
            : static_cast<double>(layer.kernel_depth) * layer.kernel_height * layer.kernel_width / layer.groups;
    parameters += taps * static_cast<double>(layer.input.channels) * static_cast<double>(layer.output.channels);
  }
  if (layer.kind != LayerKind::embedding) return parameters;
  return std::min(parameters, samples * static_cast<double>(layer.output.values()));
}

double require_rate(double rate, const char* what, const Device& device) {
  if (!(rate > 0))
    throw ConfigError("device '" + device.name + "' has no " + what +
                      ", which the roofline cost model needs; add it to the platform file");
  return rate;
}

}  // namespace

Seconds update_time(const Layer& layer, const Device& device, int accesses, double memory_efficiency) {
  const double bytes = kUpdateBytes * accesses * static_cast<double>(layer.parameter_count());
  if (bytes == 0) return Seconds(0);
  return Seconds(bytes / (memory_efficiency * require_rate(device.memory_bandwidth.value, "memory bandwidth", device)));
}

PassTimes Roofline::times(const Layer& layer, std::int64_t batch, const Device& device) const {
  if (!runs_kernels(layer.kind)) return {};
  // Attention multiplies no weights, whose scales make 8 bits enough.
  const Precision of_attention = options_.precision == Precision::fp8 ? Precision::bf16 : options_.precision;
  const FlopPerSecond peak = device.matrix_rate(multiplies_weights(layer.kind)       ? options_.precision
                                                : layer.kind == LayerKind::attention ? of_attention
                                                                                     : Precision::fp32);
  const double flop_rate = options_.efficiency * require_rate(peak.value, "peak rate", device);
  const double byte_rate =
      options_.memory_efficiency * require_rate(device.memory_bandwidth.value, "memory bandwidth", device);
  const auto samples = static_cast<double>(batch);
  const auto steps = static_cast<double>(layer.steps);
  const double bytes = bytes_per_value(options_.precision) *
                       (samples * activation_accesses(layer) / steps + parameters_read(layer, samples));
  const auto kernel = [&](double flop_per_sample) {
    return steps *
           (options_.overhead + Seconds(std::max(samples * flop_per_sample / steps / flop_rate, bytes / byte_rate)));
  };

  PassTimes times;
  times.forward = kernel(layer.forward_flop);
  if (passes_gradients_on(layer)) times.backward_data = kernel(layer.backward_data_flop);
  if (layer.backward_weights_flop > 0) times.backward_weights = kernel(layer.backward_weights_flop);
  times.update =
      options_.overhead * options_.update_kernels.launches(layer) +
      update_time(layer, device, options_.update_kernels.accesses(options_.optimizer), options_.memory_efficiency);
  return times;
}

}  // namespace epocast
