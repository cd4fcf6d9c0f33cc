#include "experiments/calibrate/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/svg.hpp"
#include "sim/quantity.hpp"

namespace epocast {
namespace {

constexpr double kPlotLeft = 110, kPlotTop = 50, kPlotSize = 540;  // pixels
constexpr int kPlotFont = 13, kPlotTitleFont = 15;

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
  const auto along = [&](double time) { return kPlotSize * (std::log10(time) - from) / (to - from); };
  const auto x = [&](double time) { return kPlotLeft + along(time); };
  const auto y = [&](double time) { return kPlotTop + kPlotSize - along(time); };

  using enum SvgAnchor;
  constexpr double kRight = kPlotLeft + kPlotSize, kPlotBottom = kPlotTop + kPlotSize;
  const auto legend = [&](const PlotSeries& s) { return fmt::format("{} ({})", s.name, s.points.size()); };
  double width = std::max(kRight + 40, kPlotLeft + text_width(title, kPlotTitleFont));
  for (const PlotSeries& s : series) width = std::max(width, kPlotLeft + 18 + text_width(legend(s), kPlotFont));
  SvgPicture picture(width, kPlotBottom + 60 + 18 * static_cast<double>(series.size()), kPlotFont);
  picture.text(kPlotLeft, 28, title, {.size = kPlotTitleFont});
  for (double decade = from; decade <= to; ++decade) {
    const double time = std::pow(10, decade);
    const std::string label = to_string(Seconds(time));
    picture.path(
        fmt::format("M{:.1f} {} V{} M{} {:.1f} H{}", x(time), kPlotTop, kPlotBottom, kPlotLeft, y(time), kRight),
        "#ddd");
    picture.text(x(time), kPlotBottom + 18, label, {.anchor = middle});
    picture.text(kPlotLeft - 6, y(time) + 4, label, {.anchor = end});
  }
  picture.path(fmt::format("M{} {} L{} {}", kPlotLeft, kPlotBottom, kRight, kPlotTop), "#888");
  picture.text(kPlotLeft + kPlotSize / 2, kPlotBottom + 38, "measured", {.anchor = middle});
  picture.text(16, kPlotTop + kPlotSize / 2, predicted_axis, {.anchor = middle, .upwards = true});
  for (std::size_t i = 0; i < series.size(); ++i) {
    const char* colour = series_colour(i);
    const bool hollow = *series_dashes(i) != '\0';  // the colours are those of an earlier series
    for (const PlotPoint& p : series[i].points)
      if (hollow)
        picture.ring(x(p.measured), y(p.predicted), 3, colour);
      else
        picture.circle(x(p.measured), y(p.predicted), 3, colour, 0.6);
    const double line = kPlotBottom + 58 + 18 * static_cast<double>(i);
    if (hollow)
      picture.ring(kPlotLeft + 6, line - 4, 4, colour);
    else
      picture.circle(kPlotLeft + 6, line - 4, 4, colour);
    picture.text(kPlotLeft + 18, line, legend(series[i]));
  }
  return picture.document();
}

}  // namespace epocast
