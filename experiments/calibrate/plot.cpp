#include "experiments/calibrate/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/quantity.hpp"

namespace epocast {
namespace {

constexpr double kLeft = 80, kTop = 50, kSize = 540;
// Distinguishable also without colour vision (Okabe and Ito 2008).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#000000", "#999933"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out;
}

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

  std::string out;
  auto at = std::back_inserter(out);
  fmt::format_to(
      at,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"{:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{}\" y=\"28\" font-size=\"15\">{}</text>\n",
      kTop + kSize + 60 + 18 * static_cast<double>(series.size()), kLeft, escaped(title));
  for (double decade = from; decade <= to; ++decade) {
    const double time = std::pow(10, decade);
    const std::string label = to_string(Seconds(time));
    fmt::format_to(at, "<path d=\"M{0:.1f} {1} V{2} M{3} {4:.1f} H{5}\" stroke=\"#ddd\"/>\n", x(time), kTop,
                   kTop + kSize, kLeft, y(time), kLeft + kSize);
    fmt::format_to(at, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(time), kTop + kSize + 18,
                   label);
    fmt::format_to(at, "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y(time) + 4, label);
  }
  fmt::format_to(at, "<path d=\"M{0} {1} L{2} {3}\" stroke=\"#888\"/>\n", kLeft, kTop + kSize, kLeft + kSize, kTop);
  fmt::format_to(at, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured</text>\n", kLeft + kSize / 2,
                 kTop + kSize + 38);
  fmt::format_to(at, "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                 kTop + kSize / 2, escaped(predicted_axis));
  for (std::size_t i = 0; i < series.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    for (const PlotPoint& p : series[i].points)
      fmt::format_to(at, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.6\"/>\n",
                     x(p.measured), y(p.predicted), colour);
    const double line = kTop + kSize + 58 + 18 * static_cast<double>(i);
    fmt::format_to(at,
                   "<circle cx=\"{}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{:.1f}\">{} ({})</text>\n",
                   kLeft + 6, line - 4, colour, kLeft + 18, line, escaped(series[i].name), series[i].points.size());
  }
  return out + "</svg>\n";
}

}  // namespace epocast
