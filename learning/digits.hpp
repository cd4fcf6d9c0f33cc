#pragma once
// Digits that the program draws.

#include <cstdint>
#include <vector>

namespace epocast::learning {

struct DigitImages {
  int side = 16;               ///< pixels
  std::vector<double> pixels;  ///< image by image, row by row; a stroke is 1, paper 0, noise on top
  std::vector<int> answers;    ///< 0..9
};

/// `count` digits, each turned, sheared, scaled and moved at random by up to `distortion` and with noise of so much
/// standard deviation on each pixel.
DigitImages draw_digits(std::int64_t count, int side, double distortion, double noise, std::uint64_t seed);

}  // namespace epocast::learning
