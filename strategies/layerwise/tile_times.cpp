#include "strategies/layerwise/tile_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/error.hpp"
#include "sim/recompute.hpp"

namespace epocast {
namespace {

double ratio(std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

std::int64_t scaled(std::int64_t value, double factor) { return std::llround(static_cast<double>(value) * factor); }

/// All that a cost model may look at but names and neighbours.
std::string signature(const Layer& layer, bool is_first) {
  std::string out = fmt::format(
      "{} {} {} {} {} k{} {} {} s{} d{} g{} p{} {} h{} {} e{} {} n{} t{} {} f{} {} {} v{} {} {} {} {}",
      to_string(layer.kind), layer.variant, to_string(layer.input), to_string(layer.output), layer.input_values,
      layer.kernel_height, layer.kernel_width, layer.kernel_depth, layer.stride, layer.dilation, layer.groups,
      layer.padding_height, layer.padding_width, layer.heads, layer.kv_heads, layer.experts, layer.experts_per_position,
      layer.neighbours, layer.steps, layer.tied_to >= 0, layer.forward_flop, layer.backward_data_flop,
      layer.backward_weights_flop, layer.inner_values, layer.mask_values, layer.frozen, layer.needs_gradient, is_first);
  out += fmt::format(" {}{}{}", layer.keeps_output, layer.backward_reads_input, layer.backward_reads_output);
  for (const ParameterTensor& tensor : layer.parameters) out += fmt::format(" {}", tensor.values);
  return out;
}

/// Channels, rows and columns of what the operator's first layer reads for a tile.
Shape input_of(const OperatorNetwork& network, std::size_t o, std::size_t l, const Tile& tile) {
  const LayerOperator& op = network.at(o);
  const Layer& layer = network.model().layers[l];
  const Tile own = network.of_layer(o, l, tile);
  if (l != op.layers.front()) {  // value by value, or two channels to one
    const double channels = ratio(layer.input.channels, std::max<std::int64_t>(1, layer.output.channels));
    return {scaled(own.output.c.size(), channels), own.output.h.size(), own.output.w.size(), layer.input.depth};
  }
  Shape out = layer.input;
  if (op.reduction > 1) out.channels = scaled(out.channels, ratio(tile.k.size(), op.reduction));
  if (op.inputs.empty()) {  // reads the network's input
    if (layer.kind == LayerKind::convolution || layer.kind == LayerKind::pooling) {
      const auto touched = [&](std::int64_t outputs, int kernel, std::int64_t whole) {
        const std::int64_t reach = static_cast<std::int64_t>(layer.dilation) * (std::max(1, kernel) - 1);
        if (is_transposed(layer)) return std::min(whole, (outputs - 1 + reach) / layer.stride + 1);
        return std::min(whole, (outputs - 1) * layer.stride + reach + 1);
      };
      out.height = touched(own.output.h.size(), layer.kernel_height, out.height);
      out.width = touched(own.output.w.size(), layer.kernel_width, out.width);
    }
    return out;
  }
  const Box box = network.needed(o, op.inputs.front(), tile);
  const Shape& source = network.at(op.inputs.front().from).output;
  if (layer.kind == LayerKind::concat)
    out.channels = own.output.c.size();
  else if (op.reduction <= 1)
    out.channels = scaled(out.channels, ratio(box.c.size(), source.channels));
  if (source.height == layer.input.height && source.width == layer.input.width) {
    out.height = box.h.size();
    out.width = box.w.size();
  }
  return out;
}

}  // namespace

Layer part_of_layer(const OperatorNetwork& network, std::size_t op, std::size_t l, const Tile& tile) {
  const Layer& whole = network.model().layers[l];
  const Tile own = network.of_layer(op, l, tile);
  Layer part = whole;
  part.output.channels = own.output.c.size();
  part.output.height = own.output.h.size();
  part.output.width = own.output.w.size();
  part.input = input_of(network, op, l, tile);
  part.input_values =
      scaled(whole.input_values, ratio(part.input.values(), std::max<std::int64_t>(1, whole.input.values())));
  if (whole.kind == LayerKind::concat) part.input_values = part.output.values();
  const bool reduces = l == network.at(op).layers.front() && network.at(op).reduction > 1;
  const double by_k = reduces ? ratio(own.k.size(), network.at(op).reduction) : 1;
  const double by_output = ratio(part.output.values(), std::max<std::int64_t>(1, whole.output.values()));
  const double by_channel = ratio(part.output.channels, std::max<std::int64_t>(1, whole.output.channels));
  part.forward_flop *= by_output * by_k;
  part.backward_data_flop *= by_output * by_k;
  part.backward_weights_flop *= by_output * by_k;
  part.inner_values = scaled(whole.inner_values, by_output);
  part.mask_values = scaled(whole.mask_values, by_output);
  for (std::size_t t = 0; t < part.parameters.size(); ++t)
    part.parameters[t].values =
        scaled(whole.parameters[t].values, by_channel * (t == 0 && reduces && whole.tied_to < 0 ? by_k : 1));
  if (whole.kind == LayerKind::attention || whole.variant == "rotary") {
    part.heads = static_cast<int>(std::max<std::int64_t>(1, scaled(whole.heads, by_channel)));
    part.kv_heads = static_cast<int>(std::max<std::int64_t>(1, scaled(whole.kv_heads, by_channel)));
  }
  if (whole.groups > 1) part.groups = static_cast<int>(std::max<std::int64_t>(1, scaled(whole.groups, by_channel)));
  return part;
}

TileTimes::TileTimes(const StrategyContext& context, const OperatorNetwork& network)
    : context_(context), network_(network), whole_(context.trace(context.worker_batch())) {
  const std::vector<Layer>& layers = network.model().layers;
  std::map<std::string, std::size_t> known;
  bool is_first = true;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    // Cost models may charge the start of a step to the first layer that computes.
    like_.push_back(known.try_emplace(signature(layers[l], is_first), l).first->second);
    if (layers[l].kind != LayerKind::input) is_first = false;
  }
}

TileTimes::Key TileTimes::key_of(std::size_t op, std::size_t l, const Tile& tile) const {
  const Tile own = network_.of_layer(op, l, tile);
  const Shape input = input_of(network_, op, l, tile);
  return {static_cast<std::int64_t>(like_[l]),
          own.output.n.size(),
          own.output.c.size(),
          own.output.h.size(),
          own.output.w.size(),
          own.k.size(),
          input.channels,
          input.height,
          input.width};
}

bool TileTimes::is_whole(const Request& request) const {
  const LayerOperator& op = network_.at(request.op);
  return request.tile.output.c.size() == op.output.channels && request.tile.output.h.size() == op.output.height &&
         request.tile.output.w.size() == op.output.width && request.tile.k.size() == op.reduction;
}

void TileTimes::ask(std::size_t op, const Tile& tile) {
  for (const std::size_t l : network_.at(op).layers) {
    if (is_empty(op, l, tile)) continue;
    const Key key = key_of(op, l, tile);
    if (!traces_.contains(key)) asked_.try_emplace(key, Request{op, l, tile});
  }
}

const WorkloadTrace& TileTimes::whole_at(std::int64_t batch) {
  const auto found = by_batch_.find(batch);
  if (found != by_batch_.end()) return found->second;
  return by_batch_.emplace(batch, batch == whole_.batch ? whole_ : context_.trace(batch)).first->second;
}

void TileTimes::answer() {
  std::map<std::int64_t, std::vector<std::pair<Key, Request>>> parts;  // by samples
  for (const auto& [key, request] : asked_) {
    const std::int64_t samples = request.tile.output.n.size();
    if (is_whole(request))
      traces_[key] = whole_at(samples).layers[request.layer];
    else
      parts[samples].emplace_back(key, request);
  }
  asked_.clear();
  if (parts.empty()) return;
  if (forgets(whole_))
    throw ConfigError(
        "layers are divided by more than images here, and what is forgotten could not be recomputed; "
        "leave memory.recompute out");
  for (const auto& [samples, requests] : parts) {
    auto model = std::make_shared<Model>();
    model->name = whole_.model;
    model->layers.emplace_back().name = "data";
    for (const auto& [key, request] : requests) {
      Layer layer = part_of_layer(network_, request.op, request.layer, request.tile);
      layer.inputs = {0};
      layer.stored_in = -1;
      model->layers.push_back(std::move(layer));
    }
    WorkloadTrace made = context_.trace_of(std::move(model))(samples);
    for (std::size_t r = 0; r < requests.size(); ++r) traces_[requests[r].first] = std::move(made.layers[r + 1]);
  }
}

bool TileTimes::is_empty(std::size_t op, std::size_t l, const Tile& tile) const {
  return network_.of_layer(op, l, tile).output.values() == 0;
}

const LayerTrace& TileTimes::nameless(std::size_t op, std::size_t l, const Tile& tile, const Key& key) {
  if (is_empty(op, l, tile)) return nothing_;
  const auto known = traces_.find(key);
  if (known != traces_.end()) return known->second;
  ask(op, tile);
  answer();
  return traces_.at(key);
}

const LayerTrace& TileTimes::trace(std::size_t op, std::size_t l, const Tile& tile) {
  const Key key = key_of(op, l, tile);
  const auto named = named_.find({l, key});
  if (named != named_.end()) return named->second;
  LayerTrace trace = nameless(op, l, tile, key);
  const LayerTrace& whole = whole_.layers[l];
  trace.name = whole.name;
  trace.kind = whole.kind;
  trace.inputs = whole.inputs;
  trace.stored_in = whole.stored_in;
  for (std::size_t t = 0; t < trace.gradients.size(); ++t) trace.gradients[t].name = whole.gradients[t].name;
  return named_.emplace(std::pair{l, key}, std::move(trace)).first->second;
}

TileTimes::Cost TileTimes::cost(std::size_t op, const Tile& tile) {
  Cost out;
  for (const std::size_t l : network_.at(op).layers) {
    const LayerTrace& trace = nameless(op, l, tile, key_of(op, l, tile));
    out.passes += (trace.times.forward + trace.times.backward()).longest().value;
    out.update += trace.times.update.longest().value;
    out.parameters += trace.parameters.value;
    out.frozen += trace.frozen.value;
    out.kept += trace.kept_activations.value;
  }
  return out;
}

}  // namespace epocast
