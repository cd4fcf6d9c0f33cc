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

bool has_colours(const std::ostream& out) {
  const char *const unwanted = std::getenv("NO_COLOR"), *const terminal = std::getenv("TERM");
  if ((unwanted != nullptr && *unwanted != '\0') || terminal == nullptr || std::string_view(terminal) == "dumb")
    return false;
  if (&out == &std::cout) return isatty(STDOUT_FILENO) != 0;
  return &out == &std::cerr && isatty(STDERR_FILENO) != 0;
}

std::string styled(const std::string& text, Style style, bool colours) {
  if (!colours) return text;
  const char* const code = style == Style::heading ? "1" : style == Style::notice ? "33" : "31";
  return std::string("\033[") + code + "m" + text + "\033[0m";
}

}  // namespace epocast
