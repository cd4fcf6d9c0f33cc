#pragma once
// English for messages.

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace epocast {

/// "1 core", "2 cores", "2.5 cores".
template <class Number>
std::string counted(Number number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == Number(1) ? "" : "s");
}

}  // namespace epocast
