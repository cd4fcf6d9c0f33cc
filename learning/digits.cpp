#include "learning/digits.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "learning/samples.hpp"

namespace epocast::learning {
namespace {

struct Point {
  double x = 0, y = 0;
};
using Stroke = std::vector<Point>;

/// The strokes of each digit in a square of -1..1, y downwards.
const std::array<std::vector<Stroke>, 10>& digit_strokes() {
  static const std::array<std::vector<Stroke>, 10> strokes{{
      {{{0, -.8}, {.45, -.5}, {.5, 0}, {.45, .5}, {0, .8}, {-.45, .5}, {-.5, 0}, {-.45, -.5}, {0, -.8}}},
      {{{-.3, -.5}, {.05, -.8}, {.05, .8}}},
      {{{-.5, -.5}, {-.2, -.8}, {.3, -.75}, {.45, -.4}, {.1, .1}, {-.5, .8}, {.5, .8}}},
      {{{-.45, -.7}, {.1, -.8}, {.45, -.45}, {0, -.05}, {.5, .35}, {.15, .8}, {-.45, .7}}},
      {{{.25, .8}, {.25, -.8}, {-.5, .3}, {.55, .3}}},
      {{{.45, -.8}, {-.35, -.8}, {-.4, -.1}, {.2, -.15}, {.5, .3}, {.15, .8}, {-.45, .7}}},
      {{{.35, -.8}, {-.25, -.3}, {-.45, .3}, {-.1, .8}, {.35, .65}, {.4, .2}, {0, .0}, {-.4, .25}}},
      {{{-.5, -.8}, {.5, -.8}, {-.1, .8}}},
      {{{0, -.05}, {-.4, -.4}, {0, -.8}, {.4, -.4}, {0, -.05}, {-.45, .4}, {0, .8}, {.45, .4}, {0, -.05}}},
      {{{.4, -.3}, {0, .0}, {-.4, -.3}, {-.1, -.8}, {.35, -.65}, {.4, -.2}, {.2, .8}}},
  }};
  return strokes;
}

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double t = std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy), 0.0, 1.0);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

}  // namespace

DigitImages draw_digits(std::int64_t count, int side, double distortion, double noise, std::uint64_t seed) {
  constexpr double kWidth = 0.13;  // of a stroke, half of it
  DigitImages out{side, {}, {}};
  out.pixels.reserve(static_cast<std::size_t>(count * side * side));
  for (std::int64_t n = 0; n < count; ++n) {
    const std::uint64_t key = combine(seed, static_cast<std::uint64_t>(n));
    const auto within = [&](std::uint64_t which, double limit) {
      return (2 * uniform(combine(key, which)) - 1) * limit;
    };
    const int digit = static_cast<int>(uniform(key) * 10);
    out.answers.push_back(digit);
    const double angle = within(1, 2 * distortion), shear = within(2, 2 * distortion);
    const double scale_x = 1 + within(3, distortion), scale_y = 1 + within(4, distortion);
    const double move_x = within(5, distortion), move_y = within(6, distortion);
    std::vector<Stroke> strokes = digit_strokes()[static_cast<std::size_t>(digit)];
    for (Stroke& stroke : strokes)
      for (Point& p : stroke) {
        const double x = scale_x * p.x + shear * p.y, y = scale_y * p.y;
        p = {std::cos(angle) * x - std::sin(angle) * y + move_x, std::sin(angle) * x + std::cos(angle) * y + move_y};
      }
    for (int row = 0; row < side; ++row)
      for (int column = 0; column < side; ++column) {
        // The square of -1..1 with a margin of a fifth.
        const Point p{1.2 * (2 * (column + 0.5) / side - 1), 1.2 * (2 * (row + 0.5) / side - 1)};
        double nearest = 10;
        for (const Stroke& stroke : strokes)
          for (std::size_t s = 1; s < stroke.size(); ++s)
            nearest = std::min(nearest, distance_to_segment(p, stroke[s - 1], stroke[s]));
        const double ink = std::clamp(1.5 - nearest / kWidth, 0.0, 1.0);
        const auto pixel = static_cast<std::uint64_t>(100 + row * side + column);
        out.pixels.push_back(ink + (noise > 0 ? noise * normal(combine(key, pixel)) : 0));
      }
  }
  return out;
}

}  // namespace epocast::learning
