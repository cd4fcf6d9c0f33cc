#pragma once
// A part of a composition as a study names it: `key: name`, or `key: {name: .., options}`.

#include <string>

#include "sim/config.hpp"

namespace epocast {

struct Part {
  std::string name;
  ConfigNode place;     ///< of the name, or of what should have had one
  ConfigNode options;   ///< a map; of no more than the name if only that is given
  ConfigNode named_in;  ///< the map whose value at name_key is the name; without such a key, it is the fallback
  const char* name_key = "name";
};

/// `key: name` as `key: {name: name}`, in the same place.
inline ConfigNode spelled_out(const std::string& key, const ConfigNode& name) {
  return ConfigNode::load_text("{}", key).with(key + ".name", name).at(key);
}

/// A name, or a map with a name and options.
inline Part read_part_of(const ConfigNode& node) {
  if (node.is_map()) return {node.at("name").as_string(), node.at("name"), node, node};
  return {node.as_string(), node, spelled_out("body", node), node};
}

/// `fallback`: its name where the key is absent.
inline Part read_part(const ConfigNode& options, const char* key, const std::string& fallback) {
  const ConfigNode nothing = ConfigNode::load_text("{}", key);
  if (!options.has(key)) return {fallback, options, nothing, nothing, "name"};
  const ConfigNode node = options.at(key);
  if (node.is_map()) {
    const ConfigNode name = node.has("name") ? node.at("name") : node;
    return {node.has("name") ? name.as_string() : fallback, name, node, node, "name"};
  }
  return {node.as_string(), node, spelled_out(key, node), options, key};
}

}  // namespace epocast
