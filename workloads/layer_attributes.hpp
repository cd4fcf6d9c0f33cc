#pragma once
// The settings of one layer in a model file, with the parameters ($name) of the block it stands in filled in.

#include <cstdint>
#include <string>
#include <utility>

#include "sim/config.hpp"

namespace epocast {

/// Where a layer stands: at the top level of the file, or in one copy of a block.
struct LayerScope {
  const LayerScope* parent = nullptr;
  const ConfigNode* use = nullptr;  ///< the entry that asks for the block and gives its parameters; null at the top
  std::string block;                ///< its name
  std::string prefix;               ///< of the names of layers in it: "" or "layer1.0."
  int input = 0;                    ///< index of the layer that the name `input` means here
  int last = 0;                     ///< index of the layer read before
  std::string stem;                 ///< name of the last layer that was named explicitly
};

/// `value`, or what the block's user gave for it if it is `$name`. Throws ConfigError if nobody did.
ConfigNode substitute(ConfigNode value, const LayerScope* scope);

/// Typed access to one layer's keys.
class LayerAttributes {
 public:
  LayerAttributes(ConfigNode node, const LayerScope& scope) : node_(std::move(node)), scope_(&scope) {}

  bool has(std::string_view key) const { return node_.is_map() && node_.has(key); }
  ConfigNode at(std::string_view key) const { return substitute(node_.at(key), scope_); }
  std::int64_t integer(std::string_view key, Range range) const { return at(key).as_int(range); }
  std::int64_t integer(std::string_view key, std::int64_t fallback, Range range) const {
    return has(key) ? integer(key, range) : fallback;
  }
  bool flag(std::string_view key, bool fallback) const { return has(key) ? at(key).as_bool() : fallback; }
  std::string text(std::string_view key, const char* fallback) const {
    return has(key) ? at(key).as_string() : fallback;
  }

  /// One integer for both directions, or a list [height, width].
  std::pair<std::int64_t, std::int64_t> pair(std::string_view key, Range range) const;

  const ConfigNode& node() const { return node_; }

 private:
  ConfigNode node_;
  const LayerScope* scope_;
};

}  // namespace epocast
