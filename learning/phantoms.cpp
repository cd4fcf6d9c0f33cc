#include "learning/phantoms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "learning/samples.hpp"

namespace epocast::learning {
namespace {

struct Ellipse {
  double intensity, a, b, x, y, degrees;
};

// Shepp and Logan 1974 with the intensities of Toft 1996, which are visible without a narrow window.
constexpr std::array<Ellipse, 10> kHead{{{1, .69, .92, 0, 0, 0},
                                         {-.8, .6624, .874, 0, -.0184, 0},
                                         {-.2, .11, .31, .22, 0, -18},
                                         {-.2, .16, .41, -.22, 0, 18},
                                         {.1, .21, .25, 0, .35, 0},
                                         {.1, .046, .046, 0, .1, 0},
                                         {.1, .046, .046, 0, -.1, 0},
                                         {.1, .046, .023, -.08, -.605, 0},
                                         {.1, .023, .023, 0, -.606, 0},
                                         {.1, .023, .046, .06, -.605, 0}}};

}  // namespace

std::vector<double> draw_phantoms(std::int64_t count, int side, std::uint64_t seed) {
  constexpr double kShape = 0.2, kPlace = 0.08, kTurn = 0.4;  // relative, in units of the image, radians
  std::vector<double> out(static_cast<std::size_t>(count * side * side), 0);
  for (std::int64_t n = 0; n < count; ++n) {
    double* image = out.data() + n * side * side;
    for (std::size_t e = 0; e < kHead.size(); ++e) {
      const std::uint64_t key = combine(combine(seed, static_cast<std::uint64_t>(n)), e);
      const auto within = [&](std::uint64_t which, double limit) {
        return (2 * uniform(combine(key, which)) - 1) * limit;
      };
      const Ellipse& base = kHead[e];
      const double a = base.a * (1 + within(1, kShape)), b = base.b * (1 + within(2, kShape));
      const double x = base.x + within(3, kPlace), y = base.y + within(4, kPlace);
      const double angle = base.degrees * std::numbers::pi / 180 + within(5, kTurn);
      for (int row = 0; row < side; ++row)
        for (int column = 0; column < side; ++column) {
          const double px = 2 * (column + 0.5) / side - 1 - x, py = 1 - 2 * (row + 0.5) / side - y;
          const double u = (std::cos(angle) * px + std::sin(angle) * py) / a;
          const double v = (-std::sin(angle) * px + std::cos(angle) * py) / b;
          if (u * u + v * v <= 1) image[row * side + column] += base.intensity;
        }
    }
    for (int pixel = 0; pixel < side * side; ++pixel) image[pixel] = std::clamp(image[pixel], 0.0, 1.0);
  }
  return out;
}

}  // namespace epocast::learning
