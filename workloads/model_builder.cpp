#include "workloads/model_builder.hpp"

#include <algorithm>
#include <cctype>

namespace epocast {
namespace {

constexpr std::size_t kMaxLayers = 200'000;  // far above any real network; stops runaway repeats
constexpr std::size_t kMaxNameLength = 200;  // of a layer's full name

std::string checked_name(const ConfigNode& value) {
  std::string name = value.as_string();
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_.-/:+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (name.empty() || name.size() > kMaxNameLength || !std::ranges::all_of(name, allowed))
    throw value.error("a name must be 1 to 200 letters, digits or _ . - / : +");
  if (name == "input") throw value.error("'input' means what the model or block reads; choose another name");
  if (name == "previous") throw value.error("'previous' means what the block before read; choose another name");
  return name;
}

/// The key of a layer's map that says what it is.
std::string layer_type(const ConfigNode& entry) {
  std::string found;
  for (const std::string& key : entry.keys()) {
    if (key != "block" && std::ranges::find(layer_type_names(), key) == layer_type_names().end()) continue;
    if (!found.empty()) throw entry.error("is both '" + found + "' and '" + key + "'; write one layer per list entry");
    found = key;
  }
  if (!found.empty()) return found;
  const std::string first = entry.keys().empty() ? "" : entry.keys().front();
  throw entry.error("unknown layer type '" + first + "'" + name_hint(first, layer_type_names()));
}

}  // namespace

ModelBuilder::ModelBuilder(const Shape& input, const ModelParameters& parameters,
                           const std::vector<std::pair<std::string, ConfigNode>>& blocks)
    : parameters_(parameters) {
  for (const auto& [name, layers] : blocks) blocks_.push_back({name, layers});
  LayerSpec spec;
  spec.layer.name = "input";
  spec.layer.input = spec.layer.output = input;
  spec.layer.input_values = input.values();
  layers_.push_back(spec);
  is_output_.push_back(false);
}

void ModelBuilder::read_layers(const ConfigNode& list) {
  LayerScope top;
  top.parameters = &parameters_;
  top.stem = "input";
  read_list(list, top, blocks_.size());
  check_all_used(list);
}

void ModelBuilder::read_list(const ConfigNode& list, LayerScope& scope, std::size_t visible_blocks) {
  if (!list.is_list() || list.items().empty())
    throw list.error("must be a list of layers such as - {conv: conv1, filters: 64, kernel: 3}");
  for (const ConfigNode& entry : list.items()) read_entry(entry, scope, visible_blocks);
}

void ModelBuilder::read_entry(const ConfigNode& entry, LayerScope& scope, std::size_t visible_blocks) {
  if (entry.is_scalar()) return read_bare(entry, scope);
  if (!entry.is_map()) throw entry.error("must be a layer such as {conv: conv1, filters: 64, kernel: 3}");
  const std::string type = layer_type(entry);
  if (type == "block") return expand_block(entry, scope, visible_blocks);
  read_typed(entry, type, scope);
}

void ModelBuilder::read_bare(const ConfigNode& entry, LayerScope& scope) {
  const std::string type = entry.as_string();
  if (std::ranges::find(layer_type_names(), type) == layer_type_names().end())
    throw entry.error("unknown layer type '" + type + "'" + name_hint(type, layer_type_names()));
  if (!is_bare_layer_type(type))
    throw entry.error("'" + type + "' needs a name and settings: {" + type + ": NAME, ...}");
  add_layer(type, scope.prefix + scope.stem + "." + type, LayerAttributes(entry, scope), {.inputs = {scope.last}},
            scope);
}

void ModelBuilder::read_typed(const ConfigNode& entry, const std::string& type, LayerScope& scope) {
  const LayerAttributes attributes(entry, scope);
  const std::string name = checked_name(attributes.at(type));
  LayerLinks links{.inputs = read_inputs(type, attributes, scope)};
  if (may_share_weights(type) && attributes.has("tied")) links.tied_to = find_layer(entry.at("tied"), scope);
  scope.stem = name;
  add_layer(type, scope.prefix + name, attributes, links, scope);
}

void ModelBuilder::expand_block(const ConfigNode& entry, LayerScope& scope, std::size_t visible_blocks) {
  const LayerAttributes attributes(entry, scope);
  const std::string name = checked_name(attributes.at("block"));
  const ConfigNode use = attributes.at("use");
  std::vector<std::string> names;
  std::size_t number = visible_blocks;
  for (std::size_t i = 0; i < visible_blocks; ++i) {
    names.push_back(blocks_[i].name);
    if (blocks_[i].name == use.as_string()) number = i;
  }
  if (number == visible_blocks)
    throw use.error("there is no block '" + use.as_string() + "' before this place" +
                    name_hint(use.as_string(), names));
  blocks_[number].used = true;

  if (attributes.has("input")) scope.last = find_layer(attributes.node().at("input"), scope);
  const std::int64_t copies = attributes.integer("repeat", 1, {0, 1e5});
  const std::int64_t first = attributes.integer("first", 0, {0, 1e6});
  if (copies == 0) try_block(entry, number, scope);
  for (std::int64_t copy = first; copy < first + copies; ++copy) {
    const std::string copy_name = attributes.has("repeat") ? name + "." + std::to_string(copy) : name;
    const int last = read_copy(entry, number, copy_name, scope);
    scope.block_input = scope.last;
    scope.last = last;
    if (attributes.has("repeat")) claim_name(scope.prefix + copy_name, last, entry);
  }
  if (attributes.has("repeat")) {
    // Of several copies the name alone means the last so far; of none, what they would have read.
    const auto [found, is_new] = by_name_.emplace(scope.prefix + name, scope.last);
    if (!is_new && layers_[static_cast<std::size_t>(found->second)].layer.name != found->first)
      found->second = scope.last;
  } else {
    claim_name(scope.prefix + name, scope.last, entry);
  }
  if (copies > 0) scope.stem = name;
}

int ModelBuilder::read_copy(const ConfigNode& entry, std::size_t number, const std::string& name,
                            const LayerScope& scope) {
  LayerScope inner{.parent = &scope,
                   .use = &entry,
                   .block = blocks_[number].name,
                   .prefix = scope.prefix + name + ".",
                   .input = scope.last,
                   .previous = scope.block_input >= 0 ? scope.block_input : scope.last,
                   .last = scope.last,
                   .stem = "input"};
  read_list(blocks_[number].layers, inner, number);
  return inner.last;
}

void ModelBuilder::try_block(const ConfigNode& entry, std::size_t number, const LayerScope& scope) {
  const std::size_t layers = layers_.size();
  const std::map<std::string, int> names = by_name_;
  read_copy(entry, number, "none", scope);
  layers_.resize(layers);
  is_output_.resize(layers);
  places_.resize(layers - 1, entry);
  by_name_ = names;
}

void ModelBuilder::add_layer(const std::string& type, const std::string& name, const LayerAttributes& attributes,
                             const LayerLinks& links, LayerScope& scope) {
  const ConfigNode& place = attributes.node();
  if (layers_.size() >= kMaxLayers) throw place.error("the model has more than 200,000 layers; repeat fewer blocks");
  if (name.size() > kMaxNameLength) throw place.error("the layer's full name is longer than 200 characters: " + name);
  const int index = static_cast<int>(layers_.size());
  claim_name(name, index, place);
  layers_.push_back(read_layer(type, name, attributes, links, layers_));
  places_.push_back(place);
  is_output_.push_back(attributes.flag("output", false));
  scope.last = index;
}

std::vector<int> ModelBuilder::read_inputs(const std::string& type, const LayerAttributes& attributes,
                                           const LayerScope& scope) {
  if (type == "data") return {0};
  const bool attention = type == "attention" && attributes.has("inputs");
  const bool regions = type == "regions" && attributes.has("inputs");
  if (!joins_inputs(type) && !attention && !regions)
    return {attributes.has("input") ? find_layer(attributes.node().at("input"), scope) : scope.last};
  const ConfigNode list = attributes.at("inputs");
  std::vector<int> inputs;
  if (list.is_list())
    for (const ConfigNode& item : list.items()) inputs.push_back(find_layer(item, scope));
  if (attention && inputs.size() != 3) throw list.error("attention needs three layers: [query, key, value]");
  if (inputs.size() < (regions ? 1 : 2))
    throw list.error("'" + type + "' needs a list of at least " +
                     (regions ? "one layer, such as [a]" : "two layers, such as [a, b]"));
  return inputs;
}

int ModelBuilder::find_layer(const ConfigNode& value, const LayerScope& scope) const {
  const LayerScope* given = &scope;  // a name that a block's user gave is one of the user's layers
  const ConfigNode node = substitute(value, given);
  const std::string name = node.as_string();
  if (name == "input") return given->input;
  if (name == "previous") return given->previous;
  if (const auto found = by_name_.find(given->prefix + name); found != by_name_.end()) return found->second;
  std::vector<std::string> candidates{"input"};
  for (const auto& [full_name, index] : by_name_)
    if (full_name.starts_with(given->prefix)) candidates.push_back(full_name.substr(given->prefix.size()));
  const std::string nearest = nearest_name(name, candidates);
  throw node.error("there is no layer '" + name + "' before this one" +
                   (nearest.empty() ? std::string("; name an earlier layer of the same block, or input")
                                    : " (did you mean '" + nearest + "'?)"));
}

void ModelBuilder::claim_name(const std::string& full_name, int index, const ConfigNode& where) {
  if (!by_name_.emplace(full_name, index).second)
    throw where.error("there is already a layer '" + full_name + "'; give this one another name");
}

void ModelBuilder::check_all_used(const ConfigNode& list) const {
  std::vector<bool> read(layers_.size(), false);
  for (const LayerSpec& spec : layers_)
    for (int input : spec.layer.inputs) read[static_cast<std::size_t>(input)] = true;
  if (!read.front()) throw list.error("no layer reads the model's input");
  for (std::size_t i = 1; i + 1 < layers_.size(); ++i)
    if (!read[i] && !is_output_[i])
      throw places_[i - 1].error("nobody reads the output of layer '" + layers_[i].layer.name +
                                 "'; use it as an input, or add 'output: true' if it is a result");
  for (std::size_t i = 1; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i].layer;
    if (layer.kind != LayerKind::dropout || layer.variant != "in_sum") continue;
    const bool summed = std::ranges::any_of(layers_, [&](const LayerSpec& reader) {
      return reader.layer.kind == LayerKind::add && std::ranges::count(reader.layer.inputs, static_cast<int>(i)) > 0;
    });
    if (!summed)
      throw places_[i - 1].error("no add reads dropout '" + layer.name +
                                 "', so its kernel cannot be part of one; leave fused out");
  }
  for (const Block& block : blocks_)
    if (!block.used) throw block.layers.error("block '" + block.name + "' is never used; remove it");
}

}  // namespace epocast
