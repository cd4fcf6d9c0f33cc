#pragma once
// What fuzz targets check with.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sim/error.hpp"

namespace epocast::fuzz {

/// Not assert(): a fuzzer must see failures in release builds too.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken property: %s\n", what);
  std::abort();
}

/// Bad input may be refused, but with words.
template <class Action>
void attempt(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    require(!std::string_view(error.what()).empty(), "errors say something");
  }
}

}  // namespace epocast::fuzz
