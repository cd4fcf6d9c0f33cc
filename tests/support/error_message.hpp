#pragma once
// What a user would read.

#include <functional>
#include <string>

#include "sim/error.hpp"

namespace epocast::testing {

/// The text of the ConfigError that `action` throws, or "no error".
inline std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace epocast::testing
