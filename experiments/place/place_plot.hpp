#pragma once
// A placement over time, as pictures.

#include <string>

#include "experiments/place/place_report.hpp"

namespace epocast {

/// The recommended placement's replay, in steps of a hundredth of it: how many devices compute (the degree of
/// parallelism that is used), and the time of transfers over that of computing. An SVG document.
std::string placement_profile_svg(const PlaceReport& report);

/// What each device holds over time [GB], and what it may hold. An SVG document.
std::string placement_memory_svg(const PlaceReport& report);

}  // namespace epocast
