#pragma once
// Reading quantities where the unit that people use is known: messages propose it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/quantity.hpp"

namespace epocast {

/// As parse_seconds and parse_bytes. `usual` is the unit to propose where none was given.
Seconds parse_seconds(std::string_view text, std::string_view usual);
Bytes parse_bytes(std::string_view text, std::string_view usual);

/// A unit of a dimension that has no type of its own, and how many of the dimension's SI unit it is.
struct UnitFactor {
  std::string name;
  double factor = 1;
};
/// A number and one of these units, as `20 $` or `700 W`, in the SI unit. `noun` says what is wanted, "a power"; the
/// first unit is the one to propose. Throws std::invalid_argument as parse_seconds() does.
double parse_quantity(std::string_view text, const std::string& noun, const std::vector<UnitFactor>& units);

/// Units of power, and of CO2 emitted for an energy.
const std::vector<UnitFactor>& power_units();
const std::vector<UnitFactor>& emission_units();

/// A quantity of whatever kind.
struct AnyQuantity {
  std::string kind;  ///< "an amount of data"; of a unit that is of no dimension here, "a number of $"
  double value = 0;  ///< in the SI unit
};
/// What a text says if it is a number and a unit: "1 MiB", "20$". A word that is no unit of a dimension is one if a
/// space is before it: "500 steps".
std::optional<AnyQuantity> any_quantity(std::string_view text);

/// The unit in which a quantity reads best: "MiB" of 25 MiB.
template <class Quantity>
std::string unit_of(Quantity quantity) {
  const std::string text = to_string(quantity);
  return text.substr(text.rfind(' ') + 1);
}

}  // namespace epocast
