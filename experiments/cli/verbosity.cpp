#include "experiments/cli/verbosity.hpp"

#include <iostream>

#include "experiments/terminal.hpp"
#include "sim/text.hpp"

namespace epocast {

void print_note(const std::string& text) {
  if (verbosity == Verbosity::quiet) return;
  std::cerr << styled("note:", Style::notice, has_colours(std::cerr)) << ' ' << printable(text) << '\n';
}

}  // namespace epocast
