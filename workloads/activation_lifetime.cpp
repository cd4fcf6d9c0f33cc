#include "workloads/activation_lifetime.hpp"

namespace epocast {

namespace {

/// How many layers read each layer's output.
std::vector<int> count_readers(const std::vector<LayerSpec>& layers) {
  std::vector<int> readers(layers.size(), 0);
  for (const LayerSpec& spec : layers)
    for (int input : spec.layer.inputs) ++readers[static_cast<std::size_t>(input)];
  return readers;
}

/// Whether a layer may write over its input: nobody else reads those values, under this or another shape, and they are
/// not the model's input.
bool may_overwrite(const std::vector<LayerSpec>& layers, const std::vector<int>& readers, std::size_t layer) {
  if (!layers[layer].in_place) return false;
  auto producer = static_cast<std::size_t>(layers[layer].layer.inputs.front());
  while (layers[producer].is_view && readers[producer] == 1)
    producer = static_cast<std::size_t>(layers[producer].layer.inputs.front());
  return producer != 0 && readers[producer] == 1 && !layers[producer].needs_output;
}

}  // namespace

void mark_kept_outputs(std::vector<LayerSpec>& layers) {
  const std::size_t n = layers.size();
  const std::vector<int> readers = count_readers(layers);

  std::vector<bool> needed(n, false);
  for (std::size_t i = 0; i < n; ++i) needed[i] = layers[i].needs_output && layers[i].needs_gradient;
  needed[n - 1] = true;
  // Backwards, so that what is needed of a view has reached it before it is handed on to the view's producer.
  for (std::size_t i = n; i-- > 0;) {
    const LayerSpec& spec = layers[i];
    const bool hand_on = (spec.needs_input && spec.needs_gradient) || (spec.is_view && needed[i]);
    for (int input : spec.layer.inputs)
      if (hand_on) needed[static_cast<std::size_t>(input)] = true;
  }
  for (std::size_t i = 0; i < n; ++i) {
    LayerSpec& spec = layers[i];
    Layer& layer = spec.layer;
    layer.backward_reads_input = spec.needs_input;
    layer.backward_reads_output = spec.needs_output;
    layer.needs_gradient = spec.needs_gradient;
    layer.keeps_output = needed[i] && !spec.is_view;
    const bool overwrites = may_overwrite(layers, readers, i);
    if (!spec.is_view && !overwrites) continue;
    const int producer = layer.inputs.front();
    Layer& input = layers[static_cast<std::size_t>(producer)].layer;
    layer.stored_in = input.stored_in >= 0 ? input.stored_in : producer;
    if (overwrites) input.keeps_output = false;
  }
}

}  // namespace epocast
