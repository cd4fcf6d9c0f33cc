#include "strategies/synchronisation/parameter_placement.hpp"

#include <algorithm>

namespace epocast {
namespace {

/// One piece per layer, or per tensor: with the layer's parameters in proportion to the tensors' gradients.
std::vector<ParameterPiece> divide(const WorkloadTrace& trace, bool by_tensor) {
  std::vector<ParameterPiece> pieces;
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    if (layer.parameters.value <= 0) continue;
    if (!by_tensor) {
      pieces.push_back(
          {.name = layer.name, .layers = {l}, .bytes = layer.parameters, .gradients = layer.gradient_bytes()});
      continue;
    }
    const Bytes all = layer.gradient_bytes();
    for (const GradientTensor& tensor : layer.gradients)
      pieces.push_back({.name = tensor.name,
                        .layers = {l},
                        .bytes = layer.parameters * (tensor.bytes / all),
                        .gradients = tensor.bytes});
  }
  return pieces;
}

/// Gives each piece its server, or divides it over all.
std::vector<ParameterPiece> place(const std::vector<ParameterPiece>& whole, int servers, ParameterPlacement placement) {
  std::vector<ParameterPiece> pieces;
  std::vector<Bytes> load(static_cast<std::size_t>(servers));
  int turn = 0;
  for (ParameterPiece piece : whole) {
    if (placement == ParameterPlacement::even) {
      piece.bytes = piece.bytes / servers;
      piece.gradients = piece.gradients / servers;
      for (piece.server = 0; piece.server < servers; ++piece.server) pieces.push_back(piece);
      continue;
    }
    piece.server = turn++ % servers;
    if (placement == ParameterPlacement::greedy)
      piece.server = static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
    load[static_cast<std::size_t>(piece.server)] += piece.bytes;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

std::vector<ParameterPiece> place_parameters(const WorkloadTrace& trace, int servers, ParameterPlacement placement,
                                             MessageGranularity granularity) {
  const std::vector<ParameterPiece> pieces =
      place(divide(trace, granularity == MessageGranularity::tensor), servers, placement);
  if (granularity != MessageGranularity::model) return pieces;
  std::vector<ParameterPiece> merged;
  for (int s = 0; s < servers; ++s) {
    ParameterPiece whole{.name = servers == 1 ? "" : "part " + std::to_string(s), .layers = {}, .server = s};
    for (const ParameterPiece& piece : pieces) {
      if (piece.server != s) continue;
      whole.bytes += piece.bytes;
      whole.gradients += piece.gradients;
      whole.layers.push_back(piece.layers.front());
    }
    if (!whole.layers.empty()) merged.push_back(std::move(whole));
  }
  return merged;
}

}  // namespace epocast
