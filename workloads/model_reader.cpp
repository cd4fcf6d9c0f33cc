#include "workloads/model_reader.hpp"

#include <algorithm>
#include <utility>

#include "sim/data_file.hpp"
#include "workloads/activation_lifetime.hpp"
#include "workloads/model_builder.hpp"
#include "workloads/shape_inference.hpp"

namespace epocast {
namespace {

Shape read_input_shape(const ConfigNode& node) {
  constexpr Range kSide{1, 1e6};
  constexpr Range kChannels{1, 1e8};
  return {.channels = node.at("channels").as_int(kChannels),
          .height = node.get("height", 1, kSide),
          .width = node.get("width", 1, kSide)};
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
    activations += static_cast<double>(layer.output.values());
  }
  constexpr auto kLimit = static_cast<double>(kMaxCount);
  if (parameters > kLimit || activations > kLimit)
    throw layers.error("the model has more than 2^53 parameters or activation values; make it smaller");
}

Model read_model(const ConfigNode& root) {
  if (!root.is_map()) throw root.error("must be a model: a map with the keys model, input and layers");
  Model model;
  model.name = root.at("model").as_string();
  model.description = root.get("description", "");
  model.source = root.get("source", "");
  const ConfigNode layers = root.at("layers");
  ModelBuilder builder(read_input_shape(root.at("input")), read_blocks(root));
  builder.read_layers(layers);
  root.check_all_read();

  std::vector<LayerSpec> specs = builder.layers();
  mark_kept_outputs(specs);
  for (LayerSpec& spec : specs) model.layers.push_back(std::move(spec.layer));
  check_totals(model, layers);
  return model;
}

}  // namespace

Model load_model(const std::filesystem::path& file) { return read_model(ConfigNode::load_file(file)); }

Model parse_model(std::string_view text, std::string name) {
  return read_model(ConfigNode::load_text(text, std::move(name)));
}

Model load_model_named(const ConfigNode& value, const std::filesystem::path& data_dir) {
  return load_model(find_data_file(value, {"model", data_dir / "workloads" / "models", ".yaml"}));
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
