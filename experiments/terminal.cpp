#include "experiments/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace epocast {

std::size_t line_width(const std::ostream& out) {
  if (&out != &std::cout || isatty(STDOUT_FILENO) == 0) return 0;
  const char* const set = std::getenv("COLUMNS");
  const std::string_view columns = set == nullptr ? "" : set;
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(columns.data(), columns.data() + columns.size(), width);
  if (error == std::errc{} && end == columns.data() + columns.size() && width > 0) return width;
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace epocast
