#include "strategies/layerwise/operators.hpp"

#include <algorithm>
#include <cmath>

namespace epocast {
namespace {

constexpr std::size_t idx(int index) { return static_cast<std::size_t>(index); }

/// Whether a layer works on what is in front of it value by value, so that it can be one operator with it.
bool joins(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::batch_norm:
    case LayerKind::activation:
    case LayerKind::dropout:
    case LayerKind::softmax: return layer.inputs.size() == 1;
    default: return false;
  }
}

bool has_depth(const Layer& layer) { return layer.input.depth > 1 || layer.output.depth > 1; }

/// Rows or columns of the input that windows over a range of the output touch. Of a transposed convolution input i
/// makes outputs from i stride - padding on, as many as the kernel covers.
IndexRange window(IndexRange out, const Layer& layer, int kernel, int padding, std::int64_t size) {
  if (out.size() == 0) return {};
  const std::int64_t reach = static_cast<std::int64_t>(layer.dilation) * (std::max(kernel, 1) - 1);
  IndexRange touched{out.begin * layer.stride - padding, (out.end - 1) * layer.stride - padding + reach + 1};
  if (is_transposed(layer)) {
    const std::int64_t first = std::max<std::int64_t>(0, out.begin + padding - reach);
    touched = {(first + layer.stride - 1) / layer.stride, (out.end - 1 + padding) / layer.stride + 1};
    if (touched.begin >= touched.end) return {};
  }
  return intersection(touched, {0, size});
}

/// The part of `whole` indices that corresponds to a range of `extent` others, outward.
IndexRange scaled(IndexRange range, std::int64_t extent, std::int64_t whole) {
  if (whole == extent) return range;
  return {range.begin * whole / extent, (range.end * whole + extent - 1) / extent};
}

std::int64_t reduction_of(const Layer& layer, const Shape* input) {
  if (has_depth(layer)) return 1;
  switch (layer.kind) {
    case LayerKind::convolution: return layer.groups == 1 ? layer.input.channels : 1;
    case LayerKind::fully_connected: return input != nullptr ? input->channels : layer.input.channels;
    case LayerKind::linear: return layer.variant == "experts" ? 1 : layer.input.channels;
    case LayerKind::embedding:
      return layer.variant == "table" ? layer.parameters.front().values / layer.output.channels : 1;
    default: return 1;
  }
}

struct Divisible {
  bool c = false, positions = false;
};

Divisible divisible(const Layer& layer) {
  if (has_depth(layer)) return {};
  switch (layer.kind) {
    case LayerKind::convolution:
    case LayerKind::pooling:
    case LayerKind::batch_norm:
    case LayerKind::local_response_norm:
    case LayerKind::activation:
    case LayerKind::add:
    case LayerKind::multiply:
    case LayerKind::concat:
    case LayerKind::dropout:
    case LayerKind::embedding: return {true, true};
    case LayerKind::fully_connected: return {true, false};
    case LayerKind::linear: return {layer.variant != "experts", layer.variant != "experts"};
    case LayerKind::layer_norm: return {false, true};
    case LayerKind::softmax: return {false, true};
    case LayerKind::attention: return {layer.parameters.empty() && layer.inputs.size() == 1, false};
    default: return {};
  }
}

/// Whether the layer is read where what it reads is: a view, or a layer in place.
bool hands_on(const Layer& layer) {
  return layer.kind == LayerKind::flatten || (joins(layer) && layer.kind != LayerKind::softmax);
}

}  // namespace

OperatorNetwork::OperatorNetwork(const Model& model) : model_(model), of_layer_(model.layers.size(), -1) {
  std::vector<int> readers(model.layers.size(), 0);
  std::vector<bool> feeds_dense(model.layers.size(), true);  // nothing but fully connected layers
  for (const Layer& layer : model.layers)
    for (const int input : layer.inputs) {
      ++readers[idx(input)];
      if (layer.kind != LayerKind::fully_connected) feeds_dense[idx(input)] = false;
    }
  // A view is as good as dense where all that reads it is a view, or a layer in place, that only dense ones read.
  for (std::size_t l = model.layers.size(); l-- > 0;) {
    if (feeds_dense[l] || readers[l] != 1) continue;
    for (std::size_t r = l + 1; r < model.layers.size(); ++r)
      if (std::ranges::find(model.layers[r].inputs, static_cast<int>(l)) != model.layers[r].inputs.end())
        feeds_dense[l] = hands_on(model.layers[r]) && feeds_dense[r] && readers[r] > 0;
  }
  // Nested concatenations are read where they are read, and are no operators.
  std::vector<bool> nested(model.layers.size(), false);
  for (const Layer& layer : model.layers)
    for (const int input : layer.inputs)
      nested[idx(input)] = layer.kind == LayerKind::concat && model.layers[idx(input)].kind == LayerKind::concat &&
                           readers[idx(input)] == 1;
  for (std::size_t l = 0; l < model.layers.size(); ++l)
    if (!nested[l]) add_layer(l, readers, feeds_dense);
  for (LayerOperator& op : operators_) finish(op);
  for (std::size_t o = 0; o < operators_.size(); ++o)
    for (std::size_t i = 0; i < operators_[o].inputs.size(); ++i)
      edges_.push_back({operators_[o].inputs[i].from, o, i});
}

void OperatorNetwork::add_layer(std::size_t l, const std::vector<int>& readers, const std::vector<bool>& feeds_dense) {
  const Layer& layer = model_.layers[l];
  if (layer.kind == LayerKind::input || layer.inputs.empty()) {
    if (layer.kind == LayerKind::input) return;
  } else {
    const std::size_t input = idx(layer.inputs.front());
    const int before = of_layer_[input];
    const bool follows = readers[input] == 1 && before >= 0 && !nested_.contains(input);
    // What is a vector already is one under any name.
    const bool is_view = layer.kind == LayerKind::flatten && (feeds_dense[l] || layer.input == layer.output);
    if (is_view && before < 0) return;  // of the network's input
    if (follows && (is_view || joins(layer))) {
      LayerOperator& op = operators_[idx(before)];
      // Behind a view for dense layers shapes are vectors; the operator keeps the map's.
      if (!is_view && layer.input == op.output) op.output = layer.output;
      op.layers.push_back(l);
      of_layer_[l] = before;
      return;
    }
  }
  LayerOperator& op = operators_.emplace_back();
  op.name = layer.name;
  op.layers = {l};
  op.output = layer.output;
  op.is_dense = layer.kind == LayerKind::fully_connected || layer.kind == LayerKind::linear;
  op.is_view = layer.kind == LayerKind::flatten;
  of_layer_[l] = static_cast<int>(operators_.size()) - 1;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < layer.inputs.size(); ++i) add_input(operators_.size() - 1, layer.inputs[i], i, offset);
}

void OperatorNetwork::add_input(std::size_t op, int input, std::size_t number, std::int64_t& offset) {
  const Layer& layer = model_.layers[idx(input)];
  if (of_layer_[idx(input)] >= 0) {
    operators_[op].inputs.push_back({idx(of_layer_[idx(input)]), number, offset});
  } else if (layer.kind == LayerKind::concat) {
    nested_[idx(input)] = offset;
    of_layer_[idx(input)] = static_cast<int>(op);
    operators_[op].layers.push_back(idx(input));
    for (const int part : layer.inputs) add_input(op, part, number, offset);
    return;
  }
  offset += layer.output.channels;
}

void OperatorNetwork::finish(LayerOperator& op) const {
  const Layer& first = model_.layers[op.layers.front()];
  op.reduction = reduction_of(first, op.inputs.empty() ? nullptr : &operators_[op.inputs.front().from].output);
  Divisible may = divisible(first);
  op.channel_groups = op.output.channels;
  if (first.kind == LayerKind::attention) op.channel_groups = first.kv_heads > 0 ? first.kv_heads : first.heads;
  for (const std::size_t l : op.layers) {
    const Layer& layer = model_.layers[l];
    op.needs_gradient |= layer.needs_gradient;
    if (layer.variant == "rotary" && layer.kv_heads > 0) op.channel_groups = layer.kv_heads;
    if (has_depth(layer)) may = {};
  }
  op.limits = {1, may.c ? op.channel_groups : 1, may.positions ? op.output.height : 1,
               may.positions ? op.output.width : 1, op.reduction};
}

DimensionLimits OperatorNetwork::limits(std::size_t op, std::int64_t batch) const {
  DimensionLimits out = operators_[op].limits;
  out[0] = batch;
  return out;
}

IndexRange OperatorNetwork::channels_needed(const Layer& first, const LayerOperator& op, const OperatorInput& input,
                                            const Tile& tile) const {
  const std::int64_t channels = operators_[input.from].output.channels;
  const IndexRange out = scaled(tile.output.c, op.output.channels, first.output.channels);
  switch (first.kind) {
    case LayerKind::convolution:
      if (op.reduction > 1) return tile.k;
      if (first.groups > 1) {
        const std::int64_t made = first.output.channels / first.groups, read = first.input.channels / first.groups;
        return intersection(IndexRange{out.begin / made * read, (out.end + made - 1) / made * read}, {0, channels});
      }
      return {0, channels};
    case LayerKind::fully_connected:
    case LayerKind::linear:
    case LayerKind::embedding:
      if (op.reduction > 1 && first.kind != LayerKind::embedding) return tile.k;
      return {0, channels};
    case LayerKind::concat: {
      const IndexRange mine = intersection(out, {input.offset, input.offset + channels});
      return mine.size() > 0 ? IndexRange{mine.begin - input.offset, mine.end - input.offset} : IndexRange{};
    }
    case LayerKind::local_response_norm: {
      const std::int64_t reach = first.neighbours / 2;
      return intersection(IndexRange{out.begin - reach, out.end + reach}, {0, channels});
    }
    case LayerKind::pooling:
    case LayerKind::batch_norm:
    case LayerKind::activation:
    case LayerKind::add:
    case LayerKind::multiply:
    case LayerKind::dropout:
    case LayerKind::attention: return scaled(out, first.output.channels, channels);
    default: return {0, channels};
  }
}

Box OperatorNetwork::needed(std::size_t o, const OperatorInput& input, const Tile& tile) const {
  const LayerOperator& op = operators_[o];
  const Layer& first = model_.layers[op.layers.front()];
  const Shape& source = operators_[input.from].output;
  Box box{tile.output.n, channels_needed(first, op, input, tile), {0, source.height}, {0, source.width}};
  if (has_depth(first)) return box;
  if (first.kind == LayerKind::multiply && source.positions() == 1) return box;  // gates, each of a whole channel
  switch (first.kind) {
    case LayerKind::convolution:
    case LayerKind::pooling:
      box.h = window(tile.output.h, first, first.kernel_height, first.padding_height, source.height);
      box.w = window(tile.output.w, first, first.kernel_width, first.padding_width, source.width);
      break;
    case LayerKind::batch_norm:
    case LayerKind::local_response_norm:
    case LayerKind::activation:
    case LayerKind::add:
    case LayerKind::multiply:
    case LayerKind::concat:
    case LayerKind::dropout:
    case LayerKind::embedding:
    case LayerKind::linear:
    case LayerKind::layer_norm:
    case LayerKind::softmax:
      box.h = tile.output.h;
      box.w = tile.output.w;
      break;
    default: break;
  }
  return box;
}

Tile OperatorNetwork::of_layer(std::size_t o, std::size_t l, const Tile& tile) const {
  const LayerOperator& op = operators_[o];
  const Shape& shape = model_.layers[l].output;
  Tile out = tile;
  if (l != op.layers.front()) out.k = {0, 1};
  if (const auto nested = nested_.find(l); nested != nested_.end()) {
    const IndexRange mine = intersection(tile.output.c, IndexRange{nested->second, nested->second + shape.channels});
    out.output.c = mine.size() > 0 ? IndexRange{mine.begin - nested->second, mine.end - nested->second} : IndexRange{};
    return out;
  }
  if (shape.height == op.output.height && shape.width == op.output.width) {
    out.output.c = scaled(tile.output.c, op.output.channels, shape.channels);
  } else {  // behind a view: its channels are all values of a map
    const std::int64_t positions = tile.output.h.size() * tile.output.w.size();
    out.output.c = {0, tile.output.c.size() * positions};
    out.output.h = out.output.w = {0, 1};
  }
  return out;
}

Model model_of(const WorkloadTrace& trace) {
  Model model{.name = trace.model, .description = "", .layers = {}, .source = ""};
  for (const LayerTrace& of : trace.layers) {
    Layer& layer = model.layers.emplace_back();
    layer.name = of.name;
    layer.kind = of.kind == LayerKind::input ? LayerKind::input : LayerKind::rearrange;
    layer.inputs = of.inputs;
    const double values = of.output.value / bytes_per_value(trace.precision) / static_cast<double>(trace.batch);
    layer.output.channels = std::max<std::int64_t>(1, static_cast<std::int64_t>(values + 0.5));
    layer.needs_gradient = of.needs_gradient;
    for (const GradientTensor& tensor : of.gradients)
      layer.parameters.push_back({tensor.name, std::llround(tensor.bytes.value / trace.gradient_value_bytes())});
  }
  return model;
}

}  // namespace epocast
