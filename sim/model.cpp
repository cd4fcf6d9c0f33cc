#include "sim/model.hpp"

namespace epocast {

std::string to_string(const Shape& shape) {
  std::string text = std::to_string(shape.channels);
  if (shape.depth != 1) text += "x" + std::to_string(shape.depth);
  if (shape.depth != 1 || shape.height != 1 || shape.width != 1)
    text += "x" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return text;
}

const char* to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::input: return "input";
    case LayerKind::convolution: return "convolution";
    case LayerKind::fully_connected: return "fully_connected";
    case LayerKind::pooling: return "pooling";
    case LayerKind::batch_norm: return "batch_norm";
    case LayerKind::local_response_norm: return "local_response_norm";
    case LayerKind::activation: return "activation";
    case LayerKind::add: return "add";
    case LayerKind::concat: return "concat";
    case LayerKind::dropout: return "dropout";
    case LayerKind::flatten: return "flatten";
    case LayerKind::softmax: return "softmax";
    case LayerKind::linear: return "linear";
    case LayerKind::embedding: return "embedding";
    case LayerKind::layer_norm: return "layer_norm";
    case LayerKind::attention: return "attention";
    case LayerKind::lstm: return "lstm";
    case LayerKind::e3d_lstm: return "e3d_lstm";
    case LayerKind::multiply: return "multiply";
    case LayerKind::rearrange: return "rearrange";
  }
  return "unknown";
}

bool multiplies_weights(LayerKind kind) {
  switch (kind) {
    case LayerKind::convolution:
    case LayerKind::fully_connected:
    case LayerKind::linear:
    case LayerKind::lstm:
    case LayerKind::e3d_lstm: return true;
    default: return false;
  }
}

std::int64_t Layer::parameter_count() const { return frozen ? 0 : weight_count(); }

std::int64_t Layer::weight_count() const {
  std::int64_t sum = 0;
  for (const auto& tensor : parameters) sum += tensor.values;
  return sum;
}

const ParameterTensor* Layer::find_parameter(std::string_view suffix) const {
  for (const ParameterTensor& tensor : parameters)
    if (std::string_view(tensor.name).ends_with(suffix)) return &tensor;
  return nullptr;
}

Model untrained(Model model) {
  for (Layer& layer : model.layers) {
    layer.frozen = layer.weight_count() > 0;
    layer.backward_data_flop = layer.backward_weights_flop = 0;
    layer.backward_reads_input = layer.backward_reads_output = layer.needs_gradient = layer.keeps_output = false;
    layer.mask_values = 0;
  }
  return model;
}

bool passes_gradients_on(const Layer& layer) {
  const bool copies = layer.kind == LayerKind::concat || layer.kind == LayerKind::rearrange;
  return layer.backward_data_flop > 0 || (copies && layer.needs_gradient);
}

bool is_transposed(const Layer& layer) { return layer.kind == LayerKind::convolution && layer.variant == "transposed"; }

std::int64_t Model::parameter_count() const {
  std::int64_t sum = 0;
  for (const auto& layer : layers) sum += layer.weight_count();
  return sum;
}

std::int64_t Model::trained_count() const {
  std::int64_t sum = 0;
  for (const auto& layer : layers) sum += layer.parameter_count();
  return sum;
}

double Model::forward_flop() const {
  double sum = 0;
  for (const auto& layer : layers) sum += layer.forward_flop;
  return sum;
}

std::int64_t Model::activation_values() const {
  std::int64_t sum = 0;
  for (const auto& layer : layers) sum += layer.kept_values();
  return sum;
}

}  // namespace epocast
