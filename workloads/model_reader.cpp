#include "workloads/model_reader.hpp"

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "sim/data_directory.hpp"
#include "sim/data_file.hpp"
#include "workloads/activation_lifetime.hpp"
#include "workloads/lora.hpp"
#include "workloads/model_builder.hpp"
#include "workloads/opaque_model.hpp"
#include "workloads/shape_inference.hpp"

namespace epocast {
namespace {

constexpr int kMaxBases = 8;  // files based on files; beyond it they go round in a circle

Shape read_input_shape(const ConfigNode& node, const ModelParameters& parameters) {
  constexpr Range kSide{1, 1e6};
  constexpr Range kChannels{1, 1e8};
  LayerScope scope;
  scope.parameters = &parameters;
  const LayerAttributes attributes(node, scope);
  const Shape shape{.channels = attributes.integer("channels", kChannels),
                    .height = attributes.integer("height", 1, kSide),
                    .width = attributes.integer("width", 1, kSide),
                    .depth = attributes.integer("depth", 1, kSide)};
  try {
    checked_values(shape);
  } catch (const std::invalid_argument&) {
    throw node.error("has more than 2^53 values; make it smaller");
  }
  return shape;
}

std::vector<std::pair<std::string, ConfigNode>> read_blocks(const ConfigNode& root) {
  std::vector<std::pair<std::string, ConfigNode>> blocks;
  if (!root.has("blocks")) return blocks;
  const ConfigNode node = root.at("blocks");
  for (const std::string& name : node.keys()) blocks.emplace_back(name, node.at(name));
  return blocks;
}

/// Sums over layers must stay exact, as each layer's counts are.
void check_totals(const Model& model, const ConfigNode& layers) {
  double parameters = 0;
  double activations = 0;
  for (const Layer& layer : model.layers) {
    for (const auto& tensor : layer.parameters) parameters += static_cast<double>(tensor.values);
    activations += static_cast<double>(layer.output.values()) + static_cast<double>(layer.inner_values);
  }
  constexpr auto kLimit = static_cast<double>(kMaxCount);
  if (parameters > kLimit || activations > kLimit)
    throw layers.error("the model has more than 2^53 parameters or activation values; make it smaller");
}

/// What a study wants to be different.
struct ModelChange {
  std::vector<ParameterOverride> overrides = {};
  std::optional<LoraSettings> lora = {};
};

Model read_model(const ConfigNode& root, ModelChange change, int bases = 0);

/// The model that another file describes, with some of its parameters set.
Model read_variant(const ConfigNode& root, ModelChange change, int bases) {
  std::vector<ParameterOverride>& overrides = change.overrides;
  const ConfigNode base = root.at("based_on");
  if (bases >= kMaxBases) throw base.error("more than 8 files are based on one another; is it a circle?");
  if (root.has("parameters"))
    for (ParameterOverride& own : read_overrides(root.at("parameters")))
      if (std::ranges::find(overrides, own.first, &ParameterOverride::first) == overrides.end())
        overrides.push_back(std::move(own));
  std::filesystem::path folder = std::filesystem::path(root.where().file).parent_path();
  std::error_code ignored;  // a path too long for the system is a file that is not there
  if (!std::filesystem::exists(folder / (base.as_string() + ".yaml"), ignored))
    folder = data_directory() / "workloads" / "models";
  const std::filesystem::path file = find_data_file(base, {"model", folder, ".yaml"});
  return read_model(ConfigNode::load_file(file), std::move(change), bases + 1);
}

std::vector<Layer> read_layers(const ConfigNode& root, const ModelChange& change) {
  const ModelParameters parameters(root, change.overrides);
  ModelBuilder builder(read_input_shape(root.at("input"), parameters), parameters, read_blocks(root));
  builder.read_layers(root.at("layers"));
  parameters.check_all_used();
  std::vector<LayerSpec> specs = builder.layers();
  if (change.lora) add_adapters(specs, *change.lora);
  mark_kept_outputs(specs);
  std::vector<Layer> layers;
  layers.reserve(specs.size());
  for (LayerSpec& spec : specs) layers.push_back(std::move(spec.layer));
  return layers;
}

Model read_model(const ConfigNode& root, ModelChange change, int bases) {
  if (!root.is_map()) throw root.error("must be a model: a map with the keys model, input and layers");
  Model model;
  model.name = root.at("model").as_string();
  model.description = root.get("description", "");
  model.source = root.get("source", "");
  model.left_out = root.get("left_out", "");
  if (root.has("based_on")) {
    Model base = read_variant(root, std::move(change), bases);
    model.layers = std::move(base.layers);
    if (model.left_out.empty()) model.left_out = std::move(base.left_out);
  } else {
    model.layers = read_layers(root, change);
  }
  root.check_all_read();
  check_totals(model, root.has("layers") ? root.at("layers") : root);
  return model;
}

/// "gpt2 layers=48 width=1600": a study's changes must show in its results.
std::string changed_name(const std::string& name, const std::vector<ParameterOverride>& overrides) {
  std::string out = name;
  for (const auto& [parameter, value] : overrides) out += " " + parameter + "=" + value.as_string();
  return out;
}

}  // namespace

Model load_model(const std::filesystem::path& file) { return read_model(ConfigNode::load_file(file), {}); }

Model parse_model(std::string_view text, std::string name) {
  return read_model(ConfigNode::load_text(text, std::move(name)), {});
}

Model load_model_named(const ConfigNode& value, const std::filesystem::path& data_dir) {
  const DataFileKind kind{"model", data_dir / "workloads" / "models", ".yaml"};
  if (!value.is_map()) return load_model(find_data_file(value, kind));
  if (value.has("opaque")) return opaque_model(value);
  const ConfigNode file = value.at("name");
  ModelChange change{read_overrides(value, {"name", "lora"})};
  const std::vector<ParameterOverride> overrides = change.overrides;
  if (value.has("lora")) change.lora = read_lora(value.at("lora"));
  Model model = read_model(ConfigNode::load_file(find_data_file(file, kind)), std::move(change));
  model.name = changed_name(model.name, overrides);
  if (value.has("lora")) model.name += " lora=" + value.at("lora").flow_text();
  return model;
}

std::vector<ModelSummary> list_models(const std::filesystem::path& folder) {
  std::vector<ModelSummary> out;
  for (const std::string& name : data_file_names(folder, ".yaml")) {
    const Model model = load_model(folder / (name + ".yaml"));
    out.push_back({name, model.description, model.source, model.parameter_count(), model.forward_flop()});
  }
  return out;
}

}  // namespace epocast
