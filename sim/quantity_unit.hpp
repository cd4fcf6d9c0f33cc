#pragma once
// Reading quantities where the unit that people use is known: messages propose it.

#include <string>
#include <string_view>

#include "sim/quantity.hpp"

namespace epocast {

/// As parse_seconds and parse_bytes. `usual` is the unit to propose where none was given.
Seconds parse_seconds(std::string_view text, std::string_view usual);
Bytes parse_bytes(std::string_view text, std::string_view usual);

/// The unit in which a quantity reads best: "MiB" of 25 MiB.
template <class Quantity>
std::string unit_of(Quantity quantity) {
  const std::string text = to_string(quantity);
  return text.substr(text.rfind(' ') + 1);
}

}  // namespace epocast
