#include "workloads/layer_cost.hpp"

namespace epocast {
namespace {

// Batch normalisation while training, per value (Ioffe and Szegedy 2015, Algorithm 1 and the gradients below it).
// Forward: mean 1, variance 3 (subtract, multiply-add), normalise 2, scale and shift 2.
constexpr double kBatchNormForward = 8;
// Scale's gradient: recompute the normalised value 2, multiply-add 2; shift's gradient: add 1.
constexpr double kBatchNormBackwardWeights = 5;
// dx = scale/sigma * (dy - mean(dy) - xhat * mean(dy * xhat)): recompute xhat 2, multiply-add 2, subtract 1, scale 1.
constexpr double kBatchNormBackwardData = 6;

// With statistics, scale and shift that are fixed it is a multiply-add forward and a product backward.
constexpr double kFrozenNormForward = 2;
constexpr double kFrozenNormBackwardData = 1;

// Layer normalisation, per value (Ba et al. 2016). Forward as batch normalisation, and so are the gradients of scale
// and shift. dx = 1/sigma * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * scale, means over the features:
// recompute xhat 2, product 1, sums 3, multiply-add 2, subtract 1, scale 1.
constexpr double kLayerNormBackwardData = 10;

// Root mean square normalisation, per value (Zhang and Sennrich 2019). Forward: multiply-add of the squares 2,
// normalise 1, scale 1. Scale's gradient: normalise 1, multiply-add 2. dx = 1/rms * (g - xhat * mean(g * xhat)) with g
// = dy * scale: recompute xhat 1, product 1, multiply-add 2, multiply-subtract 2, scale 1.
constexpr double kRmsNormForward = 4;
constexpr double kRmsNormBackwardWeights = 3;
constexpr double kRmsNormBackwardData = 7;

// Subtract the maximum, which takes 1 to find, 1; exponential 1; sum 1; divide 1.
constexpr double kSoftmaxForward = 5;
// With cross-entropy: probability minus label.
constexpr double kSoftmaxBackward = 1;

/// FLOP of a product that uses every weight once for each output position.
double product_flop(const Layer& layer) {
  if (layer.variant == "experts") {
    // Every position through as many experts; the router is the second tensor.
    const auto positions = static_cast<double>(layer.output.positions());
    const double routed = layer.parameters.size() > 1 ? static_cast<double>(layer.parameters[1].values) : 0;
    const double weights = static_cast<double>(layer.parameters.front().values) / layer.experts;
    return 2.0 * positions * (weights * layer.experts_per_position + routed);
  }
  if (layer.kind == LayerKind::linear)
    return 2.0 * static_cast<double>(layer.input.channels) * static_cast<double>(layer.output.values());
  if (layer.kind == LayerKind::fully_connected)
    return 2.0 * static_cast<double>(layer.input_values) * static_cast<double>(layer.output.values());
  const double taps = static_cast<double>(layer.kernel_depth) * layer.kernel_height * layer.kernel_width;
  // A transposed convolution spreads each input over as many outputs as a convolution gathers inputs for each output.
  const Shape& from = is_transposed(layer) ? layer.output : layer.input;
  const Shape& each = is_transposed(layer) ? layer.input : layer.output;
  return 2.0 * taps * static_cast<double>(from.channels / layer.groups) * static_cast<double>(each.values());
}

}  // namespace

void set_flop(Layer& layer, bool input_needs_gradient, double work_per_output) {
  const auto outputs = static_cast<double>(layer.output.values());
  double backward_data = 0;
  switch (layer.kind) {
    case LayerKind::convolution:
    case LayerKind::fully_connected:
    case LayerKind::linear:
      layer.forward_flop = backward_data = layer.backward_weights_flop = product_flop(layer);
      if (layer.frozen) layer.backward_weights_flop = 0;
      break;
    case LayerKind::batch_norm:
      if (layer.variant == "frozen") {
        layer.forward_flop = kFrozenNormForward * outputs;
        backward_data = kFrozenNormBackwardData * outputs;
        break;
      }
      layer.forward_flop = kBatchNormForward * outputs;
      layer.backward_weights_flop = kBatchNormBackwardWeights * outputs;
      backward_data = kBatchNormBackwardData * outputs;
      break;
    case LayerKind::layer_norm:
      if (layer.variant == "rms") {
        layer.forward_flop = kRmsNormForward * outputs;
        layer.backward_weights_flop = kRmsNormBackwardWeights * outputs;
        backward_data = kRmsNormBackwardData * outputs;
        break;
      }
      layer.forward_flop = kBatchNormForward * outputs;
      layer.backward_weights_flop = kBatchNormBackwardWeights * outputs;
      backward_data = kLayerNormBackwardData * outputs;
      break;
    case LayerKind::embedding:
      // Backward adds each position's gradient to its row; through an addition of positions it goes unchanged.
      layer.forward_flop = work_per_output * outputs;
      layer.backward_weights_flop = outputs;
      break;
    case LayerKind::multiply:
      // The gradient of each factor is the output's times the product of the others.
      layer.forward_flop = static_cast<double>(layer.inputs.size() - 1) * outputs;
      backward_data = static_cast<double>(layer.inputs.size()) * layer.forward_flop;
      break;
    case LayerKind::attention:
    case LayerKind::lstm:
    case LayerKind::e3d_lstm: return;  // set by their readers, see sequence_cost.hpp
    case LayerKind::softmax:
      layer.forward_flop = kSoftmaxForward * outputs;
      backward_data = kSoftmaxBackward * outputs;
      break;
    case LayerKind::add:
      // Backward hands the same gradient to every input: nothing to compute.
      layer.forward_flop = static_cast<double>(layer.inputs.size() - 1) * outputs;
      break;
    case LayerKind::pooling:
    case LayerKind::local_response_norm:
    case LayerKind::activation:
    case LayerKind::dropout:
      // Each output's gradient goes back through the operations that made it.
      layer.forward_flop = backward_data = work_per_output * outputs;
      break;
    case LayerKind::input:
    case LayerKind::concat:
    case LayerKind::flatten: break;
    case LayerKind::rearrange:
      // The gradients of learned positions are summed over the batch, those of copies over the copies.
      if (!layer.parameters.empty()) layer.backward_weights_flop = static_cast<double>(layer.parameter_count());
      if (layer.variant == "resize") backward_data = outputs;
      if (layer.variant == "regions") layer.forward_flop = backward_data = work_per_output * outputs;
      break;
  }
  if (input_needs_gradient) layer.backward_data_flop = backward_data;
}

}  // namespace epocast
