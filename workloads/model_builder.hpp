#pragma once
// Expands a model file's layer list, blocks included, into layers with resolved inputs.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"
#include "sim/model.hpp"
#include "workloads/layer_attributes.hpp"
#include "workloads/layer_reader.hpp"

namespace epocast {

/// Builds the layers of one model. Throws ConfigError at the place of a mistake.
class ModelBuilder {
 public:
  /// `blocks` is the file's `blocks:` map, by name and in file order. `parameters` must live as long as the builder.
  ModelBuilder(const Shape& input, const ModelParameters& parameters,
               const std::vector<std::pair<std::string, ConfigNode>>& blocks);

  /// Reads the `layers:` list, then checks that every layer but the last is read by another, and every block used.
  void read_layers(const ConfigNode& list);

  const std::vector<LayerSpec>& layers() const { return layers_; }

 private:
  struct Block {
    std::string name;
    ConfigNode layers;
    bool used = false;
  };

  void read_list(const ConfigNode& list, LayerScope& scope, std::size_t visible_blocks);
  void read_entry(const ConfigNode& entry, LayerScope& scope, std::size_t visible_blocks);
  void read_bare(const ConfigNode& entry, LayerScope& scope);
  void read_typed(const ConfigNode& entry, const std::string& type, LayerScope& scope);
  void expand_block(const ConfigNode& entry, LayerScope& scope, std::size_t visible_blocks);
  /// Reads one copy of a block; gives the index of its last layer.
  int read_copy(const ConfigNode& entry, std::size_t number, const std::string& name, const LayerScope& scope);
  /// Reads a block that is used zero times, so that mistakes are found and all is read, and leaves no trace.
  void try_block(const ConfigNode& entry, std::size_t number, const LayerScope& scope);
  void add_layer(const std::string& type, const std::string& name, const LayerAttributes& attributes,
                 const LayerLinks& links, LayerScope& scope);
  std::vector<int> read_inputs(const std::string& type, const LayerAttributes& attributes, const LayerScope& scope);
  int find_layer(const ConfigNode& name, const LayerScope& scope) const;
  void claim_name(const std::string& full_name, int index, const ConfigNode& where);
  void check_all_used(const ConfigNode& list) const;

  const ModelParameters& parameters_;
  std::vector<Block> blocks_;
  std::vector<LayerSpec> layers_;
  std::vector<ConfigNode> places_;      ///< of each layer but the input: where it stands in the file
  std::vector<bool> is_output_;         ///< marked `output: true`
  std::map<std::string, int> by_name_;  ///< full names of layers, and of blocks for their last layer
};

}  // namespace epocast
