#pragma once
// Options whose value is one of some words, or a quantity.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/error.hpp"

namespace epocast {

/// The position of a word in a list. Throws ConfigError with the nearest one.
std::size_t choose(const std::string& option, const std::string& word, const std::vector<std::string>& words);

/// What `parse` makes of the text. Throws ConfigError where it throws std::invalid_argument.
template <class Parse>
auto parse_option(const std::string& option, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (const std::invalid_argument& problem) {
    throw ConfigError(option + ": " + problem.what());
  }
}

}  // namespace epocast
