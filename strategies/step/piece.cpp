#include "strategies/step/piece.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "strategies/step/stages.hpp"

namespace epocast {
namespace {

/// Whether a layer is a normalisation that travels with the convolution before it.
bool travels_with_previous(const WorkloadTrace& trace, std::size_t l) {
  const LayerTrace& layer = trace.layers[l];
  return layer.kind == LayerKind::batch_norm && !layer.inputs.empty() &&
         static_cast<std::size_t>(layer.inputs.front()) + 1 == l &&
         trace.layers[l - 1].kind == LayerKind::convolution && !trace.layers[l - 1].gradients.empty();
}

/// Puts gradients into pieces, one after the other.
class Filling {
 public:
  Filling(const WorkloadTrace& trace, const PieceRule& rule) : trace_(trace), rule_(rule) {}

  void add(std::size_t l, std::size_t gradient, Seconds made) {
    const LayerTrace& layer = trace_.layers[l];
    const GradientTensor& tensor = layer.gradients[gradient];
    if (opens_another(l)) {
      first_ = layer.name;
      pieces_.push_back({.name = travels_alone() ? tensor.name : first_, .layers = {}});
    }
    ParameterPiece& piece = pieces_.back();
    piece.gradients += tensor.bytes;
    piece.bytes += layer.parameters * (tensor.bytes / layer.gradient_bytes());
    if (piece.layers.empty() || piece.layers.front() != l) {
      piece.layers.insert(piece.layers.begin(), l);
      piece.update += layer.times.update;
    }
    if (first_ != layer.name)
      piece.name = rule_.granularity == Granularity::unit ? layer.name : first_ + ".." + layer.name;
    if (rule_.granularity == Granularity::cycle) {
      piece.cycle = cycle_of(made);
      piece.delay = std::max(Seconds(0), rule_.cycle * static_cast<double>(piece.cycle) - made);
    }
  }

  std::vector<ParameterPiece> take() { return std::move(pieces_); }

 private:
  /// Cycles end at multiples of their length; a gradient made at such a date, but for rounding, still catches it.
  std::int64_t cycle_of(Seconds made) const {
    return static_cast<std::int64_t>(std::ceil(made / rule_.cycle * (1 - 1e-12)));
  }

  bool travels_alone() const {
    return rule_.granularity == Granularity::tensor || rule_.granularity == Granularity::cycle;
  }

  bool opens_another(std::size_t l) const {
    if (pieces_.empty()) return true;
    const Bytes filled = pieces_.back().gradients;
    const std::size_t before = pieces_.back().layers.front();
    switch (rule_.granularity) {
      case Granularity::tensor:
      case Granularity::cycle: return true;
      case Granularity::layer: return before != l;
      case Granularity::unit: return before != l && !(before == l + 1 && travels_with_previous(trace_, before));
      case Granularity::bucket: return filled >= (pieces_.size() == 1 ? rule_.first : rule_.limit);
      case Granularity::model: return false;
    }
    return true;
  }

  const WorkloadTrace& trace_;
  const PieceRule& rule_;
  std::vector<ParameterPiece> pieces_;
  std::string first_;  ///< layer that opened the current piece
};

/// `opens(layer, piece)`: whether the layer is the first of another piece than the one before.
template <class Opens>
std::vector<ParameterPiece> pieces_in_order(const WorkloadTrace& trace, Opens opens) {
  std::vector<ParameterPiece> pieces;
  for (std::size_t l = 0; l < trace.layers.size(); ++l) {
    const LayerTrace& layer = trace.layers[l];
    if (!((layer.parameters + layer.frozen).value > 0)) continue;
    if (pieces.empty() || opens(layer, pieces.back())) pieces.push_back({.name = layer.name, .layers = {}});
    ParameterPiece& piece = pieces.back();
    piece.layers.push_back(l);
    piece.bytes += layer.parameters;
    piece.gradients += layer.gradient_bytes();
    piece.frozen += layer.frozen;
    piece.update += layer.times.update;
    if (const std::string& first = trace.layers[piece.layers.front()].name; first != layer.name)
      piece.name = first + ".." + layer.name;
  }
  return pieces;
}

}  // namespace

std::vector<ParameterPiece> make_pieces(const WorkloadTrace& trace, const PieceRule& rule) {
  Filling filling(trace, rule);
  Seconds made;
  for (std::size_t l = trace.layers.size(); l-- > 0;) {
    made += trace.layers[l].times.backward().longest();  // an exchange waits for the slowest worker
    for (std::size_t g = trace.layers[l].gradients.size(); g-- > 0;) filling.add(l, g, made);
  }
  return filling.take();
}

std::vector<ParameterPiece> pieces_of_layers(const WorkloadTrace& trace, Bytes size) {
  return pieces_in_order(
      trace, [&](const LayerTrace&, const ParameterPiece& before) { return before.bytes + before.frozen >= size; });
}

std::vector<ParameterPiece> pieces_of_blocks(const WorkloadTrace& trace) {
  if (std::ranges::all_of(trace.layers, [](const LayerTrace& layer) { return block_copy(layer.name).empty(); }))
    return {};
  return pieces_in_order(trace, [&](const LayerTrace& layer, const ParameterPiece& before) {
    return block_copy(layer.name) != block_copy(trace.layers[before.layers.back()].name);
  });
}

}  // namespace epocast
