#pragma once
// Options that are one of a few words, a count or a rate.

#include <optional>
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

/// A count, or nothing for `word` ("infinite", "all"). Throws ConfigError for anything else.
inline std::optional<int> count_or(const ConfigNode& node, const std::string& word, Range range) {
  if (!node.is_scalar()) return static_cast<int>(node.as_int(range));  // throws
  const std::string text = node.as_string();
  if (text == word) return std::nullopt;
  if (text.find_first_not_of("+-.0123456789e") != std::string::npos)
    throw node.error("expected a whole number or '" + word + "', got '" + text + "'");
  return static_cast<int>(node.as_int(range));
}

/// Seconds per byte of an optional rate at which something is done beside computing, such as copying messages; 0,
/// infinitely fast, without it. Throws ConfigError for anything else.
inline double seconds_per_byte(const ConfigNode& options, const char* key) {
  return options.has(key) ? 1 / options.at(key).as_bytes_per_second(Range{1, 1e300}).value : 0;
}

}  // namespace epocast
