// Layer types that work along sequences.

#include <stdexcept>

#include "workloads/layer_draft.hpp"
#include "workloads/sequence_cost.hpp"
#include "workloads/shape_inference.hpp"

namespace epocast {
namespace {

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t out = 1;
  for (std::int64_t factor : factors) out = checked_product(out, factor);
  return out;
}

/// Splits what attention reads into queries, keys and values.
AttentionSize attention_size(const LayerDraft& draft) {
  for (const Shape& shape : draft.inputs) require_sequence(shape, "attention");
  const bool stacked = draft.inputs.size() == 1;
  const Shape& query = draft.inputs.front();
  const Shape& key = stacked ? query : draft.inputs[1];
  const Shape& value = stacked ? query : draft.inputs[2];
  const std::int64_t heads = draft.attributes.integer("heads", 1, kChannelRange);
  const std::int64_t kv_heads = draft.attributes.integer("kv_heads", heads, kChannelRange);
  if (heads % kv_heads != 0)
    throw draft.attributes.at("kv_heads")
        .error("must divide the " + std::to_string(heads) + " heads, which share those of keys and values");
  AttentionSize size{.queries = query.width, .keys = key.width, .heads = heads, .kv_heads = kv_heads};
  if (stacked) {
    // heads of queries, then kv_heads of keys and as many of values
    const std::int64_t parts = kv_heads == heads ? 3 : heads + 2 * kv_heads;
    if (query.channels % parts != 0)
      throw std::invalid_argument("attention splits its input's " + std::to_string(query.channels) +
                                  " features into query, key and value, so they must be a multiple of " +
                                  std::to_string(parts) + "; or give 'inputs: [query, key, value]'");
    size.key_features = size.value_features = query.channels / parts * (kv_heads == heads ? 1 : heads);
    return size;
  }
  if (query.channels * kv_heads != key.channels * heads || key.width != value.width)
    throw std::invalid_argument(
        "query " + to_string(query) + ", key " + to_string(key) + " and value " + to_string(value) +
        " do not fit: query and key need equal features of a head, key and value equal lengths");
  size.key_features = query.channels;
  size.value_features = checked_product(value.channels, heads / kv_heads);
  return size;
}

/// Sizes and parameters of scores that see where the queries before have looked (Chorowski et al. 2015).
void read_location(LayerDraft& draft, AttentionSize& size) {
  if (size.heads != 1)
    throw draft.attributes.at("heads").error("scores by location are those of one head, not of " +
                                             std::to_string(size.heads));
  if (static_cast<double>(size.queries) > kLengthRange.max)
    throw std::invalid_argument("attention by location of " + std::to_string(size.queries) + " queries is too long");
  size.location_filters = draft.attributes.integer("location_filters", kChannelRange);
  size.location_kernel = draft.attributes.integer("location_kernel", kKernelRange);
  draft.add_parameter("weight_location", product({2, size.location_kernel, size.location_filters}));
  draft.add_parameter("weight_filters", product({size.location_filters, size.key_features}));
  draft.layer().steps = static_cast<int>(size.queries);
}

}  // namespace

void require_sequence(const Shape& shape, const char* what) {
  if (shape.height != 1 || shape.depth != 1)
    throw std::invalid_argument(std::string(what) + " reads a sequence (features x 1 x length), not " +
                                to_string(shape));
}

void read_linear(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::linear;
  draft.spec.needs_input = true;
  layer.output.channels = draft.attributes.integer("units", kChannelRange);
  const std::int64_t weights = checked_product(layer.input.channels, layer.output.channels);
  if (draft.tied == nullptr) {
    draft.add_parameter("weight", weights);
  } else if (draft.tied->parameters.empty() || draft.tied->parameters.front().values != weights) {
    const std::int64_t others = draft.tied->parameters.empty() ? 0 : draft.tied->parameters.front().values;
    throw std::invalid_argument("cannot share the weight of '" + draft.tied->name + "', which has " +
                                std::to_string(others) + " values instead of " + std::to_string(layer.input.channels) +
                                " x " + std::to_string(layer.output.channels));
  }
  if (draft.attributes.flag("bias", true)) draft.add_parameter("bias", layer.output.channels);
}

void read_embedding(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::embedding;
  layer.variant = "table";
  if (layer.input.channels != 1)
    throw std::invalid_argument("an embedding reads one token per position (1 channel), not " + to_string(layer.input));
  draft.spec.needs_input = true;  // backward adds to the rows that the tokens name
  layer.output.channels = draft.attributes.integer("units", kChannelRange);
  draft.add_parameter("weight",
                      checked_product(draft.attributes.integer("vocabulary", kChannelRange), layer.output.channels));
  draft.work_per_output = 0;  // a look-up
}

void read_position_embedding(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::embedding;
  layer.variant = "position";
  require_sequence(layer.input, "a position embedding");
  const std::int64_t positions = draft.attributes.integer("positions", layer.input.width, kLengthRange);
  if (positions < layer.input.width)
    throw std::invalid_argument(std::to_string(positions) + " positions are too few for a sequence of " +
                                std::to_string(layer.input.width));
  draft.add_parameter("weight", checked_product(positions, layer.input.channels));
  draft.work_per_output = 1;  // added to the input
}

void read_layer_norm(LayerDraft& draft) {
  draft.layer().kind = LayerKind::layer_norm;
  draft.spec.needs_input = true;
  draft.add_parameter("weight", draft.layer().input.channels);
  if (draft.attributes.flag("bias", true)) draft.add_parameter("bias", draft.layer().input.channels);
}

/// Zhang and Sennrich 2019: divided by the root of the mean square, scaled, not shifted.
void read_rms_norm(LayerDraft& draft) {
  draft.layer().kind = LayerKind::layer_norm;
  draft.layer().variant = "rms";
  draft.spec.needs_input = true;
  draft.add_parameter("weight", draft.layer().input.channels);
}

/// Su et al. 2021: turns pairs of features of queries and keys by an angle that grows with the position. Reads what
/// attention reads as one input: heads of queries, then kv_heads of keys and of values, which stay as they are.
void read_rotary(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::activation;
  layer.variant = "rotary";
  require_sequence(layer.input, "a rotary embedding");
  layer.heads = static_cast<int>(draft.attributes.integer("heads", kChannelRange));
  layer.kv_heads = static_cast<int>(draft.attributes.integer("kv_heads", layer.heads, kChannelRange));
  if (layer.input.channels % (layer.heads + 2LL * layer.kv_heads) != 0)
    throw std::invalid_argument("the input's " + std::to_string(layer.input.channels) +
                                " features are no multiple of " + std::to_string(layer.heads + 2LL * layer.kv_heads) +
                                ", the heads of queries, keys and values");
  draft.spec.in_place = true;  // gradients are turned back by known angles
  // Two products and a sum for each value that is turned.
  draft.work_per_output = 3.0 * (layer.heads + layer.kv_heads) / (layer.heads + 2.0 * layer.kv_heads);
}

/// Shazeer 2020: of a gate and a value, silu(gate) * value.
void read_swiglu(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::activation;
  layer.variant = "swiglu";
  if (layer.input.channels % 2 != 0)
    throw std::invalid_argument("swiglu reads a gate and a value of equally many features, so they must be even, not " +
                                std::to_string(layer.input.channels));
  draft.spec.needs_input = true;
  layer.output.channels = layer.input.channels / 2;
  draft.work_per_output = 5;  // exponential, add, divide, two products
}

/// van den Oord et al. 2016, equation 2: of two halves, tanh(one) * sigmoid(other).
void read_gated_tanh(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::activation;
  layer.variant = "gated_tanh";
  if (layer.input.channels % 2 != 0)
    throw std::invalid_argument(
        "gated_tanh reads a value and a gate of equally many features, so they must be even, not " +
        std::to_string(layer.input.channels));
  draft.spec.needs_input = true;
  layer.output.channels = layer.input.channels / 2;
  draft.work_per_output = 4 + 3 + 1;  // tanh, sigmoid, product
}

/// A linear layer of several experts (Shazeer et al. 2017; Jiang et al. 2024): each position goes through `chosen` of
/// them. With `combine: false` (the default) their results stand side by side as features; with `true`, features are
/// what as many experts made, and results are summed. The first of a chain also has the router.
void read_experts(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::linear;
  layer.variant = "experts";
  draft.spec.needs_input = true;
  require_sequence(layer.input, "a layer of experts");
  const std::int64_t units = draft.attributes.integer("units", kChannelRange);
  const std::int64_t experts = draft.attributes.integer("of", {1, 1e5});
  const std::int64_t chosen = draft.attributes.integer("chosen", {1, 1e5});
  if (chosen > experts)
    throw draft.attributes.at("chosen").error("is more than the " + std::to_string(experts) + " experts there are");
  layer.experts = static_cast<int>(experts);
  layer.experts_per_position = static_cast<int>(chosen);
  const bool combine = draft.attributes.flag("combine", false);
  if (combine && layer.input.channels % chosen != 0)
    throw std::invalid_argument("the input's " + std::to_string(layer.input.channels) +
                                " features are no multiple of " + std::to_string(chosen) +
                                ", the experts that made them");
  const std::int64_t inputs = combine ? layer.input.channels / chosen : layer.input.channels;
  layer.output.channels = combine ? units : checked_product(units, chosen);
  draft.add_parameter("weight", product({experts, inputs, units}));
  if (!combine) draft.add_parameter("router", checked_product(inputs, experts));
}

/// Positions of a map, row by row, as a sequence; `extra` learned ones before them, as the class token of ViT
/// (Dosovitskiy et al. 2021).
void read_to_sequence(LayerDraft& draft) {
  Layer& layer = draft.layer();
  const std::int64_t extra = draft.attributes.integer("extra", 0, kLengthRange);
  layer.kind = extra > 0 ? LayerKind::rearrange : LayerKind::flatten;
  layer.variant = extra > 0 ? "prepend" : "";
  draft.spec.is_view = extra == 0;
  layer.output = {.channels = layer.input.channels, .width = layer.input.positions() + extra};
  if (extra > 0) draft.add_parameter("weight", checked_product(extra, layer.input.channels));
}

void read_gelu(LayerDraft& draft) {
  draft.layer().kind = LayerKind::activation;
  draft.layer().variant = "gelu";
  draft.spec.needs_input = true;  // unlike relu's, its gradient is no function of the output
  // Hendrycks and Gimpel 2016, tanh form: cube 2, multiply-add 2, scale 1, tanh 4, add 1, two products 2.
  draft.work_per_output = 12;
}

void read_attention(LayerDraft& draft) {
  Layer& layer = draft.layer();
  const LayerAttributes& attributes = draft.attributes;
  layer.kind = LayerKind::attention;
  AttentionSize size = attention_size(draft);
  if (size.key_features % size.heads != 0 || size.value_features % size.heads != 0)
    throw std::invalid_argument(std::to_string(size.heads) + " heads must divide the " +
                                std::to_string(size.key_features) + " features of a query and the " +
                                std::to_string(size.value_features) + " of a value");
  const std::string score = attributes.choice("score", {"dot", "additive", "location"});
  size.additive = score != "dot";
  size.causal = attributes.choice("pairs", {"all", "causal"}) == "causal";
  size.fused = attributes.flag("fused", false);
  if (size.causal && size.queries != size.keys)
    throw attributes.at("pairs").error("'causal' needs as many keys as queries, not " + std::to_string(size.keys) +
                                       " and " + std::to_string(size.queries));
  if (size.fused && size.additive) throw attributes.at("fused").error("only dot products can be fused");
  size.dropout = attributes.integer("softmax_dropout", 0, {0, 1}) == 1;
  layer.heads = static_cast<int>(size.heads);
  layer.kv_heads = static_cast<int>(size.kv_heads);
  layer.variant = size.additive ? score : size.causal ? "causal" : "all";
  layer.output = {.channels = size.value_features, .width = size.queries};
  if (size.additive) draft.add_parameter("weight", size.key_features);
  if (score == "location") read_location(draft, size);
  draft.spec.needs_input = true;
  draft.spec.needs_output = size.fused;
  checked_product(checked_product(size.heads + size.key_features + size.location_filters, size.queries), size.keys);
  layer.inner_values = attention_inner_values(size);
  if (size.dropout && !size.fused) layer.mask_values = static_cast<std::int64_t>(size.pairs()) * size.heads;
  set_attention_flop(layer, size, draft.input_needs_gradient);
}

void read_lstm(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::lstm;
  require_sequence(layer.input, "an LSTM");
  if (static_cast<double>(layer.input.width) > kLengthRange.max)
    throw std::invalid_argument("an LSTM of " + std::to_string(layer.input.width) + " steps is too long");
  // What later layers made in the step before comes back as further inputs, such as the context of attention.
  const std::int64_t feedback = draft.attributes.integer("feedback", 0, {0, kChannelRange.max});
  const std::int64_t inputs = layer.input.channels + feedback;
  const std::int64_t units = draft.attributes.integer("units", kChannelRange);
  layer.output.channels = units;
  layer.steps = static_cast<int>(layer.input.width);
  draft.add_parameter("weight_input", product({4, units, inputs}));
  draft.add_parameter("weight_hidden", product({4, units, units}));
  const std::int64_t biases = draft.attributes.integer("biases", 1, {0, 2});
  if (biases >= 1) draft.add_parameter("bias_input", 4 * units);
  if (biases == 2) draft.add_parameter("bias_hidden", 4 * units);
  draft.spec.needs_input = draft.spec.needs_output = true;
  layer.inner_values = product({5 * units + feedback, layer.steps});  // four gates, the cell's state, what comes back
  set_lstm_flop(layer, draft.input_needs_gradient);
}

void read_e3d_lstm(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::e3d_lstm;
  const std::int64_t inputs = layer.input.channels;
  const std::int64_t units = draft.attributes.integer("units", kChannelRange);
  const std::int64_t window = draft.attributes.integer("window", kLengthRange);
  if (layer.input.depth % window != 0)
    throw draft.attributes.at("window").error("windows of " + std::to_string(window) +
                                              " frames do not divide the input's depth of " +
                                              std::to_string(layer.input.depth));
  layer.steps = static_cast<int>(layer.input.depth / window);
  layer.output.channels = units;
  const std::vector<std::int64_t> kernel = draft.attributes.extents("kernel", 3, kKernelRange);
  layer.kernel_depth = static_cast<int>(kernel[0]);
  layer.kernel_height = static_cast<int>(kernel[1]);
  layer.kernel_width = static_cast<int>(kernel[2]);
  const std::int64_t taps = product({kernel[0], kernel[1], kernel[2]});
  // Wang et al. 2019 as their program has it: input to 3 gates of the cell, 3 of the memory and 1 of the output; hidden
  // state to 4; memory to 4; cell and memory to the output gate; 1x1x1 from both to the hidden state.
  draft.add_parameter("weight_input", product({7, taps, inputs, units}));
  draft.add_parameter("weight_hidden", product({4, taps, units, units}));
  draft.add_parameter("weight_memory", product({4, taps, units, units}));
  draft.add_parameter("weight_output_cell", product({taps, units, units}));
  draft.add_parameter("weight_output_memory", product({taps, units, units}));
  draft.add_parameter("weight_mix", product({2, units, units}));
  draft.add_parameter("bias", product({18, units}));
  // Layer norms of the products of hidden state, input and memory, and of the cell after the recall.
  const std::pair<const char*, std::int64_t> norms[] = {{"hidden", 4}, {"input", 7}, {"memory", 4}, {"recall", 1}};
  for (const auto& [name, parts] : norms) {
    draft.add_parameter(std::string("norm_") + name + ".weight", product({parts, units}));
    draft.add_parameter(std::string("norm_") + name + ".bias", product({parts, units}));
  }
  draft.spec.needs_input = draft.spec.needs_output = true;
  // The recall's scores: step t reads t cell states of one window each. Gates and states: 12 a value; what is
  // normalised: 16.
  const std::int64_t positions = layer.input.positions() / layer.steps;
  const std::int64_t scores = product({positions, positions, layer.steps, (layer.steps + 1)}) / 2;
  layer.inner_values = scores + product({12 + 16, units, layer.input.positions()});
  set_e3d_lstm_flop(layer, static_cast<double>(scores), draft.input_needs_gradient);
}

}  // namespace epocast
