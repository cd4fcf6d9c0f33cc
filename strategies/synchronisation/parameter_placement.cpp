#include "strategies/synchronisation/parameter_placement.hpp"

#include <algorithm>

namespace epocast {
namespace {

/// One piece per layer, or per layer and server.
std::vector<ParameterPiece> place_layers(const WorkloadTrace& trace, int servers, ParameterPlacement placement) {
  std::vector<ParameterPiece> pieces;
  std::vector<Bytes> load(static_cast<std::size_t>(servers));
  int turn = 0;
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    if (layer.parameters.value <= 0) continue;
    if (placement == ParameterPlacement::even) {
      for (int s = 0; s < servers; ++s)
        pieces.push_back({.name = layer.name, .layers = {l}, .bytes = layer.parameters / servers, .server = s});
      continue;
    }
    int server = turn++ % servers;
    if (placement == ParameterPlacement::greedy)
      server = static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
    load[static_cast<std::size_t>(server)] += layer.parameters;
    pieces.push_back({.name = layer.name, .layers = {l}, .bytes = layer.parameters, .server = server});
  }
  return pieces;
}

}  // namespace

std::vector<ParameterPiece> place_parameters(const WorkloadTrace& trace, int servers, ParameterPlacement placement,
                                             MessageGranularity granularity) {
  std::vector<ParameterPiece> pieces = place_layers(trace, servers, placement);
  if (granularity == MessageGranularity::layer) return pieces;
  std::vector<ParameterPiece> merged;
  for (int s = 0; s < servers; ++s) {
    ParameterPiece whole{.name = servers == 1 ? "" : "part " + std::to_string(s), .layers = {}, .server = s};
    for (const ParameterPiece& piece : pieces) {
      if (piece.server != s) continue;
      whole.bytes += piece.bytes;
      whole.layers.push_back(piece.layers.front());
    }
    if (!whole.layers.empty()) merged.push_back(std::move(whole));
  }
  return merged;
}

}  // namespace epocast
