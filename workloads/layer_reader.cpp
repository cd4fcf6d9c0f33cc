#include "workloads/layer_reader.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "workloads/layer_cost.hpp"
#include "workloads/shape_inference.hpp"

namespace epocast {
namespace {

constexpr Range kKernel{1, 1e4};
constexpr Range kStride{1, 1e4};
constexpr Range kPadding{0, 1e4};
constexpr Range kChannels{1, 1e8};

/// One layer under construction.
struct Draft {
  LayerSpec spec;
  const LayerAttributes& attributes;
  std::vector<Shape> inputs;
  double work_per_output = 1;  ///< FLOP, for the kinds that layer_cost cannot tell from the layer

  Layer& layer() { return spec.layer; }
  void add_parameter(const std::string& suffix, std::int64_t values) {
    layer().parameters.push_back({layer().name + "." + suffix, values});
  }
};

void set_window(Draft& draft, Window& window) {
  Layer& layer = draft.layer();
  const Shape output = window_output(layer.input, window);
  layer.output.height = output.height;
  layer.output.width = output.width;
  layer.kernel_height = static_cast<int>(window.kernel_height);
  layer.kernel_width = static_cast<int>(window.kernel_width);
  layer.stride = static_cast<int>(window.stride);
  layer.padding_height = static_cast<int>(window.padding_height);
  layer.padding_width = static_cast<int>(window.padding_width);
}

Window read_window(const LayerAttributes& attributes) {
  Window window;
  std::tie(window.kernel_height, window.kernel_width) = attributes.pair("kernel", kKernel);
  window.stride = attributes.integer("stride", 1, kStride);
  if (!attributes.has("padding")) return window;
  const ConfigNode padding = attributes.at("padding");
  if (padding.is_scalar() && padding.as_string() == "same") {
    window.same = true;
  } else {
    std::tie(window.padding_height, window.padding_width) = attributes.pair("padding", kPadding);
  }
  return window;
}

void read_conv(Draft& draft) {
  const LayerAttributes& attributes = draft.attributes;
  Layer& layer = draft.layer();
  layer.kind = LayerKind::convolution;
  draft.spec.needs_input = true;
  Window window = read_window(attributes);
  layer.output.channels = attributes.integer("filters", kChannels);
  set_window(draft, window);

  const std::int64_t groups = attributes.integer("groups", 1, kChannels);
  if (layer.input.channels % groups != 0 || layer.output.channels % groups != 0)
    throw std::invalid_argument("groups " + std::to_string(groups) + " must divide both the " +
                                std::to_string(layer.input.channels) + " input channels and the " +
                                std::to_string(layer.output.channels) + " filters");
  layer.groups = static_cast<int>(groups);
  const std::int64_t per_filter =
      checked_product(layer.input.channels / groups, checked_product(window.kernel_height, window.kernel_width));
  draft.add_parameter("weight", checked_product(per_filter, layer.output.channels));
  if (attributes.flag("bias", true)) draft.add_parameter("bias", layer.output.channels);
}

void read_fc(Draft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::fully_connected;
  draft.spec.needs_input = true;
  layer.output = {.channels = draft.attributes.integer("units", kChannels)};
  draft.add_parameter("weight", checked_product(layer.input_values, layer.output.channels));
  if (draft.attributes.flag("bias", true)) draft.add_parameter("bias", layer.output.channels);
}

/// True for max pooling, which must remember its input to know where each maximum was.
bool is_max(const LayerAttributes& attributes, const char* fallback) {
  const std::string type = attributes.text("type", fallback);
  if (type != "max" && type != "average")
    throw attributes.at("type").error("unknown pooling type '" + type + "'" + name_hint(type, {"max", "average"}));
  return type == "max";
}

void read_pool(Draft& draft) {
  draft.layer().kind = LayerKind::pooling;
  draft.spec.needs_input = is_max(draft.attributes, "max");
  Window window = read_window(draft.attributes);
  window.ceil_mode = draft.attributes.flag("ceil_mode", false);
  set_window(draft, window);
  draft.work_per_output = static_cast<double>(window.kernel_height * window.kernel_width);
}

void read_global_pool(Draft& draft) {
  Layer& layer = draft.layer();
  layer.kind = LayerKind::pooling;
  draft.spec.needs_input = is_max(draft.attributes, "average");
  Window window{.kernel_height = layer.input.height, .kernel_width = layer.input.width};
  set_window(draft, window);
  draft.work_per_output = static_cast<double>(layer.input.height * layer.input.width);
}

void read_batch_norm(Draft& draft) {
  draft.layer().kind = LayerKind::batch_norm;
  draft.spec.needs_input = true;
  draft.add_parameter("weight", draft.layer().input.channels);
  draft.add_parameter("bias", draft.layer().input.channels);
}

void read_lrn(Draft& draft) {
  draft.layer().kind = LayerKind::local_response_norm;
  draft.spec.needs_input = draft.spec.needs_output = true;
  // Krizhevsky et al. 2012, 3.3: squares and sum over `size` neighbours, scale and shift, power, divide.
  draft.work_per_output = 2.0 * static_cast<double>(draft.attributes.integer("size", 5, kKernel)) + 4;
}

void read_activation(Draft& draft, double work) {
  draft.layer().kind = LayerKind::activation;
  draft.spec.needs_output = true;  // the gradients of relu, sigmoid and tanh are functions of the output alone
  draft.spec.in_place = true;
  draft.work_per_output = work;
}

void read_dropout(Draft& draft) {
  draft.layer().kind = LayerKind::dropout;
  // The rate changes neither time nor memory (the mask, a bit per value, is left out), but a wrong one is a mistake.
  if (draft.attributes.has("rate") && !(draft.attributes.at("rate").as_double({0, 1}) < 1))
    throw draft.attributes.at("rate").error("dropout with rate 1 passes nothing on; use a rate below 1");
}

void read_flatten(Draft& draft) {
  draft.layer().kind = LayerKind::flatten;
  draft.layer().output = {.channels = draft.layer().input_values};
  draft.spec.is_view = true;
}

void read_softmax(Draft& draft) {
  draft.layer().kind = LayerKind::softmax;
  draft.spec.needs_output = true;
}

void read_add(Draft& draft) {
  draft.layer().kind = LayerKind::add;
  draft.layer().output = add_output(draft.inputs);
}

void read_concat(Draft& draft) {
  draft.layer().kind = LayerKind::concat;
  draft.layer().output = concat_output(draft.inputs);
}

struct LayerType {
  std::string name;
  bool bare;  ///< needs no setting
  std::function<void(Draft&)> read;
};

const std::vector<LayerType>& layer_types() {
  static const std::vector<LayerType> types{
      {"conv", false, read_conv},
      {"fc", false, read_fc},
      {"pool", false, read_pool},
      {"global_pool", true, read_global_pool},
      {"batch_norm", true, read_batch_norm},
      {"lrn", true, read_lrn},
      {"relu", true, [](Draft& draft) { read_activation(draft, 1); }},
      {"sigmoid", true, [](Draft& draft) { read_activation(draft, 3); }},  // exponential, add, divide
      {"tanh", true, [](Draft& draft) { read_activation(draft, 4); }},     // exponential, add, subtract, divide
      {"dropout", true, read_dropout},
      {"flatten", true, read_flatten},
      {"softmax", true, read_softmax},
      {"add", false, read_add},
      {"concat", false, read_concat},
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

bool joins_inputs(const std::string& type) { return type == "add" || type == "concat"; }

LayerSpec read_layer(const std::string& type, const std::string& name, const LayerAttributes& attributes,
                     const std::vector<int>& inputs, const std::vector<LayerSpec>& before) {
  Draft draft{.spec = {}, .attributes = attributes, .inputs = {}};
  Layer& layer = draft.layer();
  layer.name = name;
  layer.inputs = inputs;
  bool input_needs_gradient = false;
  for (int index : inputs) {
    const LayerSpec& producer = before[static_cast<std::size_t>(index)];
    draft.inputs.push_back(producer.layer.output);
    layer.input_values = std::min(kMaxCount + 1, layer.input_values + producer.layer.output.values());
    input_needs_gradient = input_needs_gradient || producer.needs_gradient;
  }
  layer.input = layer.output = draft.inputs.front();
  try {
    find_type(type).read(draft);
    checked_values(layer.output);
    if (layer.input_values > kMaxCount)
      throw std::invalid_argument("the layer has more than 2^53 values; make it smaller");
  } catch (const std::invalid_argument& problem) {
    throw attributes.node().error(problem.what());
  }
  set_flop(layer, input_needs_gradient, draft.work_per_output);
  draft.spec.needs_gradient = input_needs_gradient || !layer.parameters.empty();
  return std::move(draft.spec);
}

}  // namespace epocast
