#include "experiments/calibrate/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/svg.hpp"
#include "sim/quantity.hpp"

namespace epocast {
namespace {

constexpr double kLeft = 110, kTop = 50, kSize = 540;  // pixels
constexpr int kFont = 13, kTitleFont = 15;

}  // namespace

std::string scatter_svg(const std::string& title, const std::string& predicted_axis,
                        const std::vector<PlotSeries>& series) {
  double low = 1e300;
  double high = 0;
  for (const PlotSeries& s : series)
    for (const PlotPoint& p : s.points) {
      low = std::min({low, p.measured, p.predicted});
      high = std::max({high, p.measured, p.predicted});
    }
  const double from = std::floor(std::log10(low));
  const double to = std::max(std::ceil(std::log10(high)), from + 1);
  const auto along = [&](double time) { return kSize * (std::log10(time) - from) / (to - from); };
  const auto x = [&](double time) { return kLeft + along(time); };
  const auto y = [&](double time) { return kTop + kSize - along(time); };

  using enum SvgAnchor;
  constexpr double kRight = kLeft + kSize, kBottom = kTop + kSize;
  const auto legend = [&](const PlotSeries& s) { return fmt::format("{} ({})", s.name, s.points.size()); };
  double width = std::max(kRight + 40, kLeft + text_width(title, kTitleFont));
  for (const PlotSeries& s : series) width = std::max(width, kLeft + 18 + text_width(legend(s), kFont));
  SvgPicture picture(width, kBottom + 60 + 18 * static_cast<double>(series.size()), kFont);
  picture.text(kLeft, 28, title, {.size = kTitleFont});
  for (double decade = from; decade <= to; ++decade) {
    const double time = std::pow(10, decade);
    const std::string label = to_string(Seconds(time));
    picture.path(fmt::format("M{:.1f} {} V{} M{} {:.1f} H{}", x(time), kTop, kBottom, kLeft, y(time), kRight), "#ddd");
    picture.text(x(time), kBottom + 18, label, {.anchor = middle});
    picture.text(kLeft - 6, y(time) + 4, label, {.anchor = end});
  }
  picture.path(fmt::format("M{} {} L{} {}", kLeft, kBottom, kRight, kTop), "#888");
  picture.text(kLeft + kSize / 2, kBottom + 38, "measured", {.anchor = middle});
  picture.text(16, kTop + kSize / 2, predicted_axis, {.anchor = middle, .upwards = true});
  for (std::size_t i = 0; i < series.size(); ++i) {
    const char* colour = series_colour(i);
    const bool hollow = *series_dashes(i) != '\0';  // the colours are those of an earlier series
    for (const PlotPoint& p : series[i].points)
      if (hollow)
        picture.ring(x(p.measured), y(p.predicted), 3, colour);
      else
        picture.circle(x(p.measured), y(p.predicted), 3, colour, 0.6);
    const double line = kBottom + 58 + 18 * static_cast<double>(i);
    if (hollow)
      picture.ring(kLeft + 6, line - 4, 4, colour);
    else
      picture.circle(kLeft + 6, line - 4, 4, colour);
    picture.text(kLeft + 18, line, legend(series[i]));
  }
  return picture.document();
}

}  // namespace epocast
