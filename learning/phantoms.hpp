#pragma once
// Randomised phantoms after Shepp and Logan 1974: the ten ellipses of a head, each with another place, shape and
// orientation, as Lee 2020, 5.4 randomises them.

#include <cstdint>
#include <vector>

namespace epocast::learning {

/// `count` images of side x side pixels, row by row, scaled to 0..1.
std::vector<double> draw_phantoms(std::int64_t count, int side, std::uint64_t seed);

}  // namespace epocast::learning
