#include "costmodels/fused_norms.hpp"

#include <algorithm>
#include <cstddef>

namespace epocast {

std::vector<FusedNorm> fused_norms(const Model& model) {
  const std::vector<Layer>& layers = model.layers;
  std::vector<FusedNorm> out(layers.size(), FusedNorm::no);
  std::vector<int> readers(layers.size(), 0);
  for (const Layer& layer : layers)
    for (const int input : layer.inputs) ++readers[static_cast<std::size_t>(input)];
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i].kind == LayerKind::batch_norm && layers[i].variant != "frozen") out[i] = FusedNorm::alone;
  const auto ends_alone = [&](std::size_t i) { return out[i] == FusedNorm::alone && readers[i] == 1; };
  for (std::size_t relu = 0; relu < layers.size(); ++relu) {
    if (layers[relu].kind != LayerKind::activation || layers[relu].variant != "relu") continue;
    const auto below = static_cast<std::size_t>(layers[relu].inputs.front());
    if (ends_alone(below)) {
      out[below] = FusedNorm::with_relu;
      out[relu] = FusedNorm::part_of_norm;
      continue;
    }
    if (layers[below].kind != LayerKind::add || readers[below] != 1) continue;
    const std::vector<int>& added = layers[below].inputs;
    const auto last = std::find_if(added.rbegin(), added.rend(),
                                   [&](int input) { return ends_alone(static_cast<std::size_t>(input)); });
    if (last == added.rend()) continue;
    out[static_cast<std::size_t>(*last)] = FusedNorm::with_sum;
    out[below] = out[relu] = FusedNorm::part_of_norm;
  }
  return out;
}

}  // namespace epocast
