#include "strategies/parameter_unit.hpp"

namespace epocast {

ParameterUnits parameter_units(const WorkloadTrace& trace) {
  ParameterUnits units;
  units.starting_at.assign(trace.layers.size(), -1);
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    if (layer.gradients.empty()) continue;
    const bool follows = layer.kind == LayerKind::batch_norm && !layer.inputs.empty() &&
                         static_cast<std::size_t>(layer.inputs.front()) + 1 == l && !units.all.empty() &&
                         units.all.back().first + 1 == l &&
                         trace.layers[units.all.back().first].kind == LayerKind::convolution;
    if (!follows) {
      units.starting_at[l] = static_cast<int>(units.all.size());
      units.all.push_back({layer.name, l, layer.kind == LayerKind::fully_connected, Bytes(0), Seconds(0)});
    }
    for (const GradientTensor& gradient : layer.gradients) units.all.back().bytes += gradient.bytes;
    units.all.back().update += layer.times.update;
  }
  return units;
}

}  // namespace epocast
