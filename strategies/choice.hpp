#pragma once
// Options that are one of a few words.

#include <string>
#include <utility>
#include <vector>

#include "sim/config.hpp"

namespace epocast {

/// The value that `options[key]` names, or `fallback` if the key is absent.
/// Throws ConfigError with the nearest word for any other.
template <class Value>
Value choose(const ConfigNode& options, const char* key, const std::vector<std::pair<std::string, Value>>& choices,
             Value fallback) {
  if (!options.has(key)) return fallback;
  const ConfigNode node = options.at(key);
  const std::string word = node.as_string();
  std::vector<std::string> words;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    words.push_back(name);
  }
  throw node.error("unknown value '" + word + "'" + name_hint(word, words));
}

}  // namespace epocast
