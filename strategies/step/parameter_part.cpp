#include "strategies/step/parameter_part.hpp"

namespace epocast {

ParameterPart part_of(const Chunk& chunk, const WorkloadTrace& trace, const std::vector<bool>& experts, bool wanted) {
  ParameterPart part{chunk, trace};
  part.chunk.parameters = Bytes(0);
  part.chunk.update = DeviceTime();
  if (wanted) part.chunk.name += " experts";
  for (std::size_t l = chunk.first; l < chunk.last; ++l) {
    LayerTrace& layer = part.trace.layers[l];
    if (layer.gradients.empty()) continue;
    const Bytes all = layer.gradient_bytes();
    const auto behind_experts = layer.gradients.begin() + (experts[l] ? 1 : 0);
    if (wanted)
      layer.gradients.erase(behind_experts, layer.gradients.end());
    else
      layer.gradients.erase(layer.gradients.begin(), behind_experts);
    const double share = layer.gradient_bytes() / all;
    layer.parameters = layer.parameters * share;
    layer.times.update = layer.times.update * share;
    part.chunk.parameters += layer.parameters;
    part.chunk.update += layer.times.update;
  }
  return part;
}

}  // namespace epocast
