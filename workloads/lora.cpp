#include "workloads/lora.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "workloads/layer_cost.hpp"

namespace epocast {
namespace {

constexpr Range kRanks{1, 65536};

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool can_have_adapter(const Layer& layer) {
  const bool is_product = layer.kind == LayerKind::linear || layer.kind == LayerKind::fully_connected;
  return is_product && layer.variant.empty() && layer.tied_to < 0;
}

bool is_chosen(const Layer& layer, const LoraSettings& settings) {
  if (!can_have_adapter(layer)) return false;
  if (settings.layers.empty()) return layer.name.find('.') != std::string::npos;
  return std::ranges::any_of(settings.layers, [&](const ConfigNode& node) {
    return node.as_string() == layer.name || node.as_string() == last_part(layer.name);
  });
}

void check_names(const std::vector<LayerSpec>& layers, const LoraSettings& settings) {
  std::set<std::string> known;
  for (const LayerSpec& spec : layers)
    if (can_have_adapter(spec.layer)) known.insert({spec.layer.name, last_part(spec.layer.name)});
  std::vector<std::string> names;  // those of single copies come last
  std::ranges::copy_if(known, std::back_inserter(names),
                       [](const std::string& name) { return name.find('.') == std::string::npos; });
  for (const ConfigNode& node : settings.layers)
    if (!known.contains(node.as_string()))
      throw node.error("the network has no linear layer '" + node.as_string() + "'" +
                       name_hint(node.as_string(), names));
}

/// Without gradients of weights, and without those of activations where nothing before it is trained.
void freeze(LayerSpec& spec, bool input_needs_gradient) {
  Layer& layer = spec.layer;
  layer.frozen = layer.weight_count() > 0;
  if (multiplies_weights(layer.kind) && layer.steps == 1) spec.needs_input = false;
  layer.backward_weights_flop = 0;
  if (!input_needs_gradient) layer.backward_data_flop = 0;
  spec.needs_gradient = input_needs_gradient;
}

class AdaptedNetwork {
 public:
  explicit AdaptedNetwork(const LoraSettings& settings) : settings_(settings) {}

  std::vector<LayerSpec> made_of(std::vector<LayerSpec> layers) {
    check_names(layers, settings_);
    for (LayerSpec& spec : layers) {
      for (int& input : spec.layer.inputs) input = moved_[static_cast<std::size_t>(input)];
      if (spec.layer.tied_to >= 0) spec.layer.tied_to = original_[static_cast<std::size_t>(spec.layer.tied_to)];
      freeze(spec, needs_gradient(spec.layer));
      const bool adapts = is_chosen(spec.layer, settings_);
      const int index = add(std::move(spec));
      original_.push_back(index);
      moved_.push_back(adapts ? add_adapter(index) : index);
      any_ |= adapts;
    }
    if (!any_)
      throw settings_.place.error(
          "the network has no linear layers in repeated blocks; name those that get adapters, as in "
          "{rank: 16, layers: [fc]}");
    return std::move(out_);
  }

 private:
  bool needs_gradient(const Layer& layer) const {
    return std::ranges::any_of(layer.inputs,
                               [&](int input) { return out_[static_cast<std::size_t>(input)].needs_gradient; });
  }
  int add(LayerSpec spec) {
    out_.push_back(std::move(spec));
    return static_cast<int>(out_.size()) - 1;
  }

  /// Gives the index of the sum, which stands for the layer from then on.
  int add_adapter(int index) {
    const Layer base = out_[static_cast<std::size_t>(index)].layer;
    if (const std::int64_t inputs = base.weight_count() / base.output.channels;
        settings_.rank >= std::min(inputs, base.output.channels))
      throw settings_.place.error(
          fmt::format("a rank of {} is no less than a side of '{}', which is {} x {}; use a smaller one",
                      settings_.rank, base.name, inputs, base.output.channels));
    const int down = product(base, "lora_a", base.inputs.front(), settings_.rank);
    const int up = product(base, "lora_b", down, base.output.channels);
    LayerSpec sum;
    sum.layer.name = base.name + ".lora_sum";
    sum.layer.kind = LayerKind::add;
    sum.layer.inputs = {index, up};
    sum.layer.input = sum.layer.output = base.output;
    sum.layer.input_values = 2 * base.output.values();
    set_flop(sum.layer, true, 1);
    sum.needs_gradient = true;
    return add(std::move(sum));
  }

  int product(const Layer& base, const char* what, int input, std::int64_t units) {
    const LayerSpec& from = out_[static_cast<std::size_t>(input)];
    LayerSpec spec;
    Layer& layer = spec.layer;
    layer.name = base.name + "." + what;
    layer.kind = base.kind;
    layer.variant = kAdapter;
    layer.inputs = {input};
    layer.input = from.layer.output;
    layer.input_values = from.layer.output.values();
    layer.output = base.output;
    layer.output.channels = units;
    const std::int64_t inputs = base.kind == LayerKind::fully_connected ? layer.input_values : layer.input.channels;
    layer.parameters = {{layer.name + ".weight", inputs * units}};
    set_flop(layer, from.needs_gradient, 1);
    spec.needs_input = spec.needs_gradient = true;
    return add(std::move(spec));
  }

  const LoraSettings& settings_;
  std::vector<LayerSpec> out_;
  std::vector<int> moved_, original_;  ///< by layer of the network: what its readers read, and itself
  bool any_ = false;
};

}  // namespace

LoraSettings read_lora(const ConfigNode& node) {
  LoraSettings settings{.rank = 0, .layers = {}, .place = node};
  if (!node.is_map()) {
    settings.rank = node.as_int(kRanks);
    return settings;
  }
  settings.rank = node.at("rank").as_int(kRanks);
  if (node.has("layers")) {
    settings.layers = node.at("layers").items();
    if (settings.layers.empty())
      throw node.at("layers").error("no layers; name some, or leave this out for all in blocks");
  }
  node.check_all_read();
  return settings;
}

void add_adapters(std::vector<LayerSpec>& layers, const LoraSettings& settings) {
  layers = AdaptedNetwork(settings).made_of(std::move(layers));
}

}  // namespace epocast
