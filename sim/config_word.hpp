#pragma once
// Words of a configuration that parsers of names understand.

#include <stdexcept>
#include <string>

#include "sim/config.hpp"

namespace epocast {

/// What `parse` makes of a word that stands at `place`; what it throws (std::invalid_argument) becomes a ConfigError
/// with that place.
template <class Parse>
auto parse_name(const ConfigNode& place, const std::string& word, Parse parse) {
  try {
    return parse(word);
  } catch (const std::invalid_argument& problem) {
    throw place.error(problem.what());
  }
}

/// The same of a node's own word.
template <class Parse>
auto parse_name(const ConfigNode& node, Parse parse) {
  return parse_name(node, node.as_string(), parse);
}

}  // namespace epocast
