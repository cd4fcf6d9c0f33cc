#pragma once
// The settings of one layer in a model file, with parameters ($name, $(2*name)) of the file and of the block it stands
// in filled in.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"
#include "workloads/model_parameters.hpp"

namespace epocast {

/// Where a layer stands: at the top level of the file, or in one copy of a block.
struct LayerScope {
  const LayerScope* parent = nullptr;
  const ModelParameters* parameters = nullptr;  ///< of the file; null in a block, which asks its parents
  const ConfigNode* use = nullptr;  ///< the entry that asks for the block and gives its parameters; null at the top
  std::string block;                ///< its name
  std::string prefix;               ///< of the names of layers in it: "" or "layer1.0."
  int input = 0;                    ///< index of the layer that the name `input` means here
  int previous = 0;                 ///< likewise `previous`: what the block before this one read
  int block_input = -1;             ///< what the last block used here read; -1 before the first
  int last = 0;                     ///< index of the layer read before
  std::string stem;                 ///< name of the last layer that was named explicitly
  mutable std::map<std::string, std::int64_t> known = {};  ///< values of names used in expressions here
};

/// `value`, or what `$name` stands for: what the block's user gave, else the file's parameter. Moves `scope` to where
/// that was written. Throws ConfigError if nobody gave a value.
ConfigNode substitute(ConfigNode value, const LayerScope*& scope);

/// The whole number that `value` is or stands for. Throws ConfigError if it is none or out of range.
std::int64_t whole_number(const ConfigNode& value, const LayerScope& scope, Range range);

/// Typed access to one layer's keys.
class LayerAttributes {
 public:
  LayerAttributes(ConfigNode node, const LayerScope& scope) : node_(std::move(node)), scope_(&scope) {}

  bool has(std::string_view key) const { return node_.is_map() && node_.has(key); }
  ConfigNode at(std::string_view key) const {
    const LayerScope* scope = scope_;
    return substitute(node_.at(key), scope);
  }
  std::int64_t integer(std::string_view key, Range range) const { return whole_number(node_.at(key), *scope_, range); }
  std::int64_t integer(std::string_view key, std::int64_t fallback, Range range) const {
    return has(key) ? integer(key, range) : fallback;
  }
  bool flag(std::string_view key, bool fallback) const { return has(key) ? at(key).as_bool() : fallback; }
  std::string text(std::string_view key, const char* fallback) const {
    return has(key) ? at(key).as_string() : fallback;
  }
  /// One of `choices`; the first if the key is not there.
  std::string choice(std::string_view key, const std::vector<std::string>& choices) const;

  /// One integer for all directions, or a list of one each: [height, width] for two, [depth, height, width] for three,
  /// [width] for one.
  std::vector<std::int64_t> extents(std::string_view key, std::size_t directions, Range range) const;

  const ConfigNode& node() const { return node_; }

 private:
  ConfigNode node_;
  const LayerScope* scope_;
};

}  // namespace epocast
