#include "experiments/cli/word_option.hpp"

#include <algorithm>

#include "sim/config.hpp"

namespace epocast {

std::size_t choose(const std::string& option, const std::string& word, const std::vector<std::string>& words) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) throw ConfigError(option + ": unknown word '" + word + "'" + name_hint(word, words));
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace epocast
