#pragma once
// Times that are read beside each other, in one unit.

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sim/quantity.hpp"

namespace epocast {

/// Writes times with the unit of the longest of them, and to the same place, one digit more than to_string() shows of
/// the longest: 141.30 ms and 0.47 ms, not 141.3 ms and 471.2 us.
class TimeScale {
 public:
  /// `longest`: s; REQUIRES finite.
  explicit TimeScale(double longest) {
    const std::string shown = to_string(Seconds(longest));
    const std::size_t space = shown.find(' '), point = shown.find('.');
    unit_ = shown.substr(space + 1);
    size_ = parse_seconds("1 " + unit_).value;
    if (point < space) decimals_ = static_cast<int>(space - point);
  }

  /// Of a time in s. What is too short to show is less than the last place.
  std::string text(double seconds) const {
    if (seconds == 0) return "0 " + unit_;
    const double scaled = seconds / size_, last_place = std::pow(10.0, -decimals_);
    if (std::abs(scaled) < last_place / 2) return fmt::format("<{:.{}f} {}", last_place, decimals_, unit_);
    return fmt::format("{:.{}f} {}", scaled, decimals_, unit_);
  }

 private:
  std::string unit_;
  double size_ = 1;  ///< of the unit [s]
  int decimals_ = 0;
};

}  // namespace epocast
