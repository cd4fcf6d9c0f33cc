#include "sim/cost_model.hpp"

#include <cmath>

namespace epocast {
namespace {

/// Values of the matrix that a convolution's input is unfolded into (im2col), one sample at a time as Caffe does (Jia
/// 2014, "Learning semantic image representations at large scale", 6.1): a column of channels x taps for each position
/// of the output; of a transposed convolution, whose product makes columns that are added up to its output, the other
/// way round. A 1x1 convolution without stride or padding needs none: its input is that matrix.
double column_buffer_values(const Layer& layer) {
  if (layer.kind != LayerKind::convolution) return 0;
  const double taps = static_cast<double>(layer.kernel_depth) * layer.kernel_height * layer.kernel_width;
  if (taps == 1 && layer.stride == 1 && layer.output.positions() == layer.input.positions()) return 0;
  const Shape& wide = is_transposed(layer) ? layer.output : layer.input;
  const Shape& columns = is_transposed(layer) ? layer.input : layer.output;
  return taps * static_cast<double>(wide.channels) * static_cast<double>(columns.positions());
}

void check_times(const PassTimes& times, const Layer& layer) {
  for (Seconds t : {times.forward, times.backward_data, times.backward_weights, times.update})
    if (!std::isfinite(t.value) || t.value < 0)
      throw SimulationError("the cost model gives layer '" + layer.name + "' the time " + std::to_string(t.value) +
                            " s");
}

/// `activations`: precision of what the layer writes.
LayerTrace trace_layer(const Layer& layer, std::int64_t batch, Precision precision, Precision activations) {
  const auto value_bytes = [precision](double values) { return Bytes(values * bytes_per_value(precision)); };
  const auto activation_bytes = [activations](double values) { return Bytes(values * bytes_per_value(activations)); };
  const auto samples = static_cast<double>(batch);
  LayerTrace out;
  out.name = layer.name;
  out.kind = layer.kind;
  out.inputs = layer.inputs;
  for (const auto& tensor : layer.parameters)
    if (!layer.frozen) out.gradients.push_back({tensor.name, value_bytes(static_cast<double>(tensor.values))});
  out.parameters = value_bytes(static_cast<double>(layer.parameter_count()));
  out.frozen = value_bytes(static_cast<double>(layer.weight_count() - layer.parameter_count()));
  out.output = activation_bytes(samples * static_cast<double>(layer.output.values()));
  const Bytes masks(samples * static_cast<double>(layer.mask_values));
  out.kept_activations = activation_bytes(samples * static_cast<double>(layer.kept_values())) + masks;
  out.forward_flop = Flop(samples * layer.forward_flop);
  out.backward_reads_input = layer.backward_reads_input;
  out.backward_reads_output = layer.backward_reads_output;
  out.needs_gradient = layer.needs_gradient;
  out.stored_in = layer.stored_in;
  out.inner = activation_bytes(samples * static_cast<double>(layer.inner_values)) + masks;
  out.workspace = value_bytes(column_buffer_values(layer));
  out.backward_flop = Flop(samples * (layer.backward_data_flop + layer.backward_weights_flop));
  return out;
}

}  // namespace

WorkloadTrace make_trace(const Model& model, const CostModel& cost, std::int64_t batch, const Device& device,
                         Precision precision) {
  if (batch < 1) throw ConfigError("the batch size must be at least 1, not " + std::to_string(batch));
  WorkloadTrace trace;
  trace.model = model.name;
  trace.batch = batch;
  trace.precision = precision;
  trace.layers.reserve(model.layers.size());
  for (const auto& layer : model.layers) {
    const bool is_loss = &layer == &model.layers.back() && layer.kind == LayerKind::softmax;
    trace.layers.push_back(
        trace_layer(layer, batch, precision, is_loss && cost.loss_in_fp32() ? Precision::fp32 : precision));
    if (layer.kind == LayerKind::input) continue;
    PassTimes times = cost.times(layer, batch, device);
    if (layer.frozen) times.backward_weights = times.update = Seconds(0);
    check_times(times, layer);
    trace.layers.back().times = times;
  }
  return trace;
}

}  // namespace epocast
