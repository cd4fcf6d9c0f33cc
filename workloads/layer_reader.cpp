#include "workloads/layer_reader.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "workloads/layer_cost.hpp"
#include "workloads/layer_draft.hpp"
#include "workloads/shape_inference.hpp"

namespace epocast {
namespace {

constexpr Range kStride{1, 1e4};
constexpr Range kPadding{0, 1e4};

void set_window(LayerDraft& draft, Window& window) {
  Layer& layer = draft.layer();
  const Shape output = window_output(layer.input, window);
  layer.output.height = output.height;
  layer.output.width = output.width;
  layer.output.depth = output.depth;
  layer.kernel_height = static_cast<int>(window.kernel_height);
  layer.kernel_width = static_cast<int>(window.kernel_width);
  layer.stride = static_cast<int>(window.stride);
  layer.dilation = static_cast<int>(window.dilation);
  layer.padding_height = static_cast<int>(window.padding_height);
  layer.padding_width = static_cast<int>(window.padding_width);
  if (window.kernel_depth > 0) layer.kernel_depth = static_cast<int>(window.kernel_depth);
  layer.padding_depth = static_cast<int>(window.padding_depth);
}

/// `directions`: 1 for windows along the width, 2 for windows over height and width, 3 for windows over depth too.
Window read_window(const LayerAttributes& attributes, std::size_t directions) {
  Window window;
  const std::vector<std::int64_t> kernel = attributes.extents("kernel", directions, kKernelRange);
  window.kernel_width = kernel[directions - 1];
  if (directions >= 2) window.kernel_height = kernel[directions - 2];
  if (directions == 3) window.kernel_depth = kernel[0];
  window.stride = attributes.integer("stride", 1, kStride);
  if (!attributes.has("padding")) return window;
  const ConfigNode padding = attributes.at("padding");
  if (padding.is_scalar() && padding.as_string() == "same") {
    window.same = true;
  } else {
    const std::vector<std::int64_t> sides = attributes.extents("padding", directions, kPadding);
    window.padding_width = sides[directions - 1];
    if (directions >= 2) window.padding_height = sides[directions - 2];
    if (directions == 3) window.padding_depth = sides[0];
  }
  return window;
}

void read_transposition(const LayerAttributes& attributes, Window& window) {
  window.transposed = attributes.flag("transposed", false);
  if (!attributes.has("output_padding")) return;
  window.output_padding = attributes.integer("output_padding", kPadding);
  if (!window.transposed || window.same)
    throw attributes.at("output_padding")
        .error("belongs to transposed convolutions whose padding is given; leave it out");
  if (window.output_padding >= std::max(window.stride, window.dilation))
    throw attributes.at("output_padding")
        .error("must be smaller than stride or dilation: what lies farther out is reached by no input");
}

/// The convolution whose weight and bias are used instead of own ones.
void share_parameters(LayerDraft& draft, std::int64_t weights) {
  const Layer& of = *draft.tied;
  if (of.kind != LayerKind::convolution || of.parameter_count() == 0 || of.parameters.front().values != weights ||
      of.variant != draft.layer().variant)
    throw std::invalid_argument("cannot share the parameters of '" + of.name +
                                "', which is no convolution of the same kind with a weight of " +
                                std::to_string(weights) + " values");
  for (const char* own : {"bias", "weight_norm", "trained"})
    if (draft.attributes.has(own))
      throw draft.attributes.at(own).error("is that of '" + of.name + "', whose parameters are shared; leave it out");
}

void add_parameters(LayerDraft& draft, std::int64_t weights) {
  if (draft.tied != nullptr) return share_parameters(draft, weights);
  const std::int64_t filters = draft.layer().output.channels;
  draft.add_parameter("weight", weights);
  if (draft.attributes.flag("bias", true)) draft.add_parameter("bias", filters);
  // Salimans and Kingma 2016: direction and length of each filter's weights.
  if (draft.attributes.flag("weight_norm", false)) draft.add_parameter("gain", filters);
  draft.layer().frozen = !draft.attributes.flag("trained", true);
}

void read_convolution(LayerDraft& draft, std::size_t directions) {
  const LayerAttributes& attributes = draft.attributes;
  Layer& layer = draft.layer();
  layer.kind = LayerKind::convolution;
  Window window = read_window(attributes, directions);
  window.dilation = attributes.integer("dilation", 1, kStride);
  read_transposition(attributes, window);
  if (window.transposed) layer.variant = "transposed";
  layer.output.channels = attributes.integer("filters", kChannelRange);
  set_window(draft, window);

  const std::int64_t groups = attributes.integer("groups", 1, kChannelRange);
  if (layer.input.channels % groups != 0 || layer.output.channels % groups != 0)
    throw std::invalid_argument("groups " + std::to_string(groups) + " must divide both the " +
                                std::to_string(layer.input.channels) + " input channels and the " +
                                std::to_string(layer.output.channels) + " filters");
  layer.groups = static_cast<int>(groups);
  const std::int64_t taps =
      checked_product(layer.kernel_depth, checked_product(window.kernel_height, window.kernel_width));
  const std::int64_t per_filter = checked_product(layer.input.channels / groups, taps);
  add_parameters(draft, checked_product(per_filter, layer.output.channels));
  draft.spec.needs_input = !layer.frozen;  // the gradient of the weights does
}

void read_conv1d(LayerDraft& draft) {
  require_sequence(draft.layer().input, "a conv1d");
  read_convolution(draft, 1);
}
void read_conv(LayerDraft& draft) { read_convolution(draft, 2); }
void read_conv3d(LayerDraft& draft) { read_convolution(draft, 3); }

void read_fc(LayerDraft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::fully_connected;
  draft.spec.needs_input = true;
  layer.output = {.channels = draft.attributes.integer("units", kChannelRange)};
  draft.add_parameter("weight", checked_product(layer.input_values, layer.output.channels));
  if (draft.attributes.flag("bias", true)) draft.add_parameter("bias", layer.output.channels);
}

/// True for max pooling, which must remember its input to know where each maximum was.
bool is_max(const LayerAttributes& attributes, const std::string& usual) {
  return attributes.choice("type", {usual, usual == "max" ? "average" : "max"}) == "max";
}

void set_pooling(LayerDraft& draft, bool takes_maximum) {
  draft.layer().kind = LayerKind::pooling;
  draft.layer().variant = takes_maximum ? "max" : "average";
  draft.spec.needs_input = takes_maximum;
}

void read_pool(LayerDraft& draft, std::size_t directions) {
  set_pooling(draft, is_max(draft.attributes, "max"));
  Window window = read_window(draft.attributes, directions);
  window.ceil_mode = draft.attributes.flag("ceil_mode", false);
  set_window(draft, window);
  draft.work_per_output =
      static_cast<double>(draft.layer().kernel_depth) * static_cast<double>(window.kernel_height * window.kernel_width);
}

void read_pool2d(LayerDraft& draft) { read_pool(draft, 2); }
void read_pool3d(LayerDraft& draft) { read_pool(draft, 3); }

void read_global_pool(LayerDraft& draft) {
  Layer& layer = draft.layer();
  set_pooling(draft, is_max(draft.attributes, "average"));
  Window window{
      .kernel_height = layer.input.height, .kernel_width = layer.input.width, .kernel_depth = layer.input.depth};
  set_window(draft, window);
  draft.work_per_output = static_cast<double>(layer.input.positions());
}

void read_batch_norm(LayerDraft& draft) {
  draft.layer().kind = LayerKind::batch_norm;
  if (draft.attributes.flag("frozen", false)) {  // statistics, scale and shift as they were learned before
    draft.layer().variant = "frozen";
    return;
  }
  draft.spec.needs_input = true;
  draft.add_parameter("weight", draft.layer().input.channels);
  draft.add_parameter("bias", draft.layer().input.channels);
}

void read_lrn(LayerDraft& draft) {
  draft.layer().kind = LayerKind::local_response_norm;
  draft.spec.needs_input = draft.spec.needs_output = true;
  // Krizhevsky et al. 2012, 3.3: squares and sum over `size` neighbours, scale and shift, power, divide.
  draft.layer().neighbours = static_cast<int>(draft.attributes.integer("size", 5, kKernelRange));
  draft.work_per_output = 2.0 * draft.layer().neighbours + 4;
}

/// The gradients of these are functions of the output alone.
void read_activation(LayerDraft& draft, const char* function, double work) {
  draft.layer().kind = LayerKind::activation;
  draft.layer().variant = function;
  draft.spec.needs_output = true;
  draft.spec.in_place = true;
  draft.work_per_output = work;
}

void read_relu(LayerDraft& draft) { read_activation(draft, "relu", 1); }
void read_leaky_relu(LayerDraft& draft) { read_activation(draft, "leaky_relu", 2); }  // compare, multiply
void read_sigmoid(LayerDraft& draft) { read_activation(draft, "sigmoid", 3); }        // exponential, add, divide
void read_tanh(LayerDraft& draft) { read_activation(draft, "tanh", 4); }  // exponential, add, subtract, divide
void read_exp(LayerDraft& draft) { read_activation(draft, "exp", 1); }

/// x sigmoid(x): its gradient is no function of the output alone.
void read_silu(LayerDraft& draft) {
  draft.layer().kind = LayerKind::activation;
  draft.layer().variant = "silu";
  draft.spec.needs_input = true;
  draft.work_per_output = 4;  // sigmoid 3, product 1
}

void read_dropout(LayerDraft& draft) {
  draft.layer().kind = LayerKind::dropout;
  // The rate changes neither time nor memory, but a wrong one is a mistake.
  if (draft.attributes.has("rate") && !(draft.attributes.at("rate").as_double({0, 1}) < 1))
    throw draft.attributes.at("rate").error("dropout with rate 1 passes nothing on; use a rate below 1");
  if (draft.attributes.flag("mask", false)) draft.layer().mask_values = draft.layer().output.values();
  if (draft.attributes.flag("fused", false)) draft.layer().variant = "in_sum";
}

void read_flatten(LayerDraft& draft) {
  draft.layer().kind = LayerKind::flatten;
  draft.layer().output = {.channels = draft.layer().input_values};
  draft.spec.is_view = true;
}

void read_softmax(LayerDraft& draft) {
  draft.layer().kind = LayerKind::softmax;
  draft.spec.needs_output = true;
}

void read_add(LayerDraft& draft) {
  draft.layer().kind = LayerKind::add;
  draft.layer().output = add_output(draft.inputs);
}

void read_concat(LayerDraft& draft) {
  draft.layer().kind = LayerKind::concat;
  draft.layer().output = concat_output(draft.inputs);
}

/// Equal shapes, or gates of a channel each (Hu et al. 2018, "Squeeze-and-excitation networks"), for all its positions.
void read_multiply(LayerDraft& draft) {
  draft.layer().kind = LayerKind::multiply;
  const Shape largest = *std::ranges::max_element(draft.inputs, {}, &Shape::values);
  std::vector<Shape> spread = draft.inputs;
  for (Shape& shape : spread)
    if (shape.channels == largest.channels && shape.positions() == 1) shape = largest;
  draft.layer().output = add_output(spread);
  draft.spec.needs_input = true;
}

/// Channels in groups of factor^2 become squares of factor x factor pixels (Shi et al. 2016).
void read_pixel_shuffle(LayerDraft& draft) {
  Layer& layer = draft.rearranged("pixel_shuffle");
  const std::int64_t factor = draft.attributes.integer("factor", kKernelRange);
  if (layer.input.channels % (factor * factor) != 0)
    throw std::invalid_argument("pixel_shuffle by " + std::to_string(factor) + " needs a multiple of " +
                                std::to_string(factor * factor) + " channels, not " +
                                std::to_string(layer.input.channels));
  layer.output.channels /= factor * factor;
  layer.output.height = checked_product(layer.input.height, factor);
  layer.output.width = checked_product(layer.input.width, factor);
}

/// Some positions of a sequence, as the first token or those that are masked; or some channels.
void read_select(LayerDraft& draft) {
  Layer& layer = draft.rearranged("select");
  if (draft.attributes.has("channels")) {
    layer.output.channels = draft.attributes.integer("channels", kChannelRange);
    if (layer.output.channels > layer.input.channels)
      throw std::invalid_argument("cannot select " + std::to_string(layer.output.channels) + " channels of " +
                                  std::to_string(layer.input.channels));
    return;
  }
  layer.output.width = draft.attributes.integer("positions", kLengthRange);
  if (layer.output.width > layer.input.width)
    throw std::invalid_argument("cannot select " + std::to_string(layer.output.width) + " positions of " +
                                std::to_string(layer.input.width));
}

/// Channels of zeros, for shortcuts without parameters (He et al. 2016, option A).
void read_pad_channels(LayerDraft& draft) {
  Layer& layer = draft.rearranged("pad_channels");
  layer.output.channels = draft.attributes.integer("channels", kChannelRange);
  if (layer.output.channels < layer.input.channels)
    throw std::invalid_argument("cannot pad " + std::to_string(layer.input.channels) + " channels to " +
                                std::to_string(layer.output.channels));
}

struct LayerType {
  std::string name;
  bool bare;  ///< needs no setting
  LayerTypeReader read;
};

const std::vector<LayerType>& layer_types() {
  static const std::vector<LayerType> types{
      {"conv1d", false, read_conv1d},
      {"conv", false, read_conv},
      {"conv3d", false, read_conv3d},
      {"fc", false, read_fc},
      {"linear", false, read_linear},
      {"pool", false, read_pool2d},
      {"pool3d", false, read_pool3d},
      {"global_pool", true, read_global_pool},
      {"batch_norm", true, read_batch_norm},
      {"layer_norm", true, read_layer_norm},
      {"lrn", true, read_lrn},
      {"relu", true, read_relu},
      {"leaky_relu", true, read_leaky_relu},
      {"sigmoid", true, read_sigmoid},
      {"tanh", true, read_tanh},
      {"exp", true, read_exp},
      {"gated_tanh", true, read_gated_tanh},
      {"rms_norm", true, read_rms_norm},
      {"gelu", true, read_gelu},
      {"silu", true, read_silu},
      {"swiglu", true, read_swiglu},
      {"dropout", true, read_dropout},
      {"flatten", true, read_flatten},
      {"softmax", true, read_softmax},
      {"add", false, read_add},
      {"multiply", false, read_multiply},
      {"concat", false, read_concat},
      {"embedding", false, read_embedding},
      {"position_embedding", true, read_position_embedding},
      {"rotary", false, read_rotary},
      {"attention", false, read_attention},
      {"experts", false, read_experts},
      {"to_sequence", true, read_to_sequence},
      {"lstm", false, read_lstm},
      {"e3d_lstm", false, read_e3d_lstm},
      {"pixel_shuffle", false, read_pixel_shuffle},
      {"pixel_unshuffle", false, read_pixel_unshuffle},
      {"resize", false, read_resize},
      {"crop", false, read_crop},
      {"regions", false, read_regions},
      {"data", false, read_data},
      {"select", false, read_select},
      {"pad_channels", false, read_pad_channels},
  };
  return types;
}

const LayerType& find_type(const std::string& name) {
  return *std::ranges::find(layer_types(), name, &LayerType::name);
}

}  // namespace

const std::vector<std::string>& layer_type_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& type : layer_types()) out.push_back(type.name);
    return out;
  }();
  return names;
}

bool is_bare_layer_type(const std::string& type) { return find_type(type).bare; }

bool joins_inputs(const std::string& type) { return type == "add" || type == "multiply" || type == "concat"; }

bool may_share_weights(const std::string& type) { return type == "linear" || type.starts_with("conv"); }

LayerSpec read_layer(const std::string& type, const std::string& name, const LayerAttributes& attributes,
                     const LayerLinks& links, const std::vector<LayerSpec>& before) {
  LayerDraft draft{.spec = {}, .attributes = attributes, .inputs = {}};
  Layer& layer = draft.layer();
  layer.name = name;
  layer.inputs = links.inputs;
  for (int index : links.inputs) {
    const LayerSpec& producer = before[static_cast<std::size_t>(index)];
    draft.inputs.push_back(producer.layer.output);
    layer.input_values = std::min(kMaxCount + 1, layer.input_values + producer.layer.output.values());
    draft.input_needs_gradient = draft.input_needs_gradient || producer.needs_gradient;
  }
  layer.input = layer.output = draft.inputs.front();
  const bool sums_dropout = std::ranges::any_of(links.inputs, [&](int index) {
    const Layer& input = before[static_cast<std::size_t>(index)].layer;
    return input.kind == LayerKind::dropout && input.variant == "in_sum";
  });
  if (type == "add" && sums_dropout) layer.variant = "in_sum";
  layer.tied_to = links.tied_to;
  if (links.tied_to >= 0) draft.tied = &before[static_cast<std::size_t>(links.tied_to)].layer;
  try {
    find_type(type).read(draft);
    checked_values(layer.output);
    if (layer.input_values > kMaxCount)
      throw std::invalid_argument("the layer has more than 2^53 values; make it smaller");
  } catch (const std::invalid_argument& problem) {
    throw attributes.node().error(problem.what());
  }
  set_flop(layer, draft.input_needs_gradient, draft.work_per_output);
  draft.spec.needs_gradient = draft.input_needs_gradient || layer.parameter_count() > 0 || draft.tied != nullptr;
  return std::move(draft.spec);
}

}  // namespace epocast
