#include "workloads/activation_lifetime.hpp"

namespace epocast {

void mark_kept_outputs(std::vector<LayerSpec>& layers) {
  const std::size_t n = layers.size();
  std::vector<int> readers(n, 0);
  for (const LayerSpec& spec : layers)
    for (int input : spec.layer.inputs) ++readers[static_cast<std::size_t>(input)];

  std::vector<bool> needed(n, false);
  for (std::size_t i = 0; i < n; ++i) needed[i] = layers[i].needs_output;
  needed[n - 1] = true;
  // Backwards, so that what is needed of a view has reached it before it is handed on to the view's producer.
  for (std::size_t i = n; i-- > 0;) {
    const LayerSpec& spec = layers[i];
    const bool hand_on = spec.needs_input || (spec.is_view && needed[i]);
    for (int input : spec.layer.inputs)
      if (hand_on) needed[static_cast<std::size_t>(input)] = true;
  }
  for (std::size_t i = 0; i < n; ++i) {
    LayerSpec& spec = layers[i];
    // A first layer is always the input, whose producer index does not exist.
    spec.layer.keeps_output = needed[i] && !spec.is_view;
    if (!spec.in_place) continue;
    const auto producer = static_cast<std::size_t>(spec.layer.inputs.front());
    const bool overwrites = producer != 0 && readers[producer] == 1 && !layers[producer].needs_output;
    if (overwrites) layers[producer].layer.keeps_output = false;
  }
}

}  // namespace epocast
