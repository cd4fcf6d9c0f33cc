#include "experiments/partition/partition_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace epocast {
namespace {

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
      out += c;
  }
  return out;
}

}  // namespace

void draw_partition(std::ostream& out, const FilterNetwork& network, const LayerShares& shares,
                    const std::string& title) {
  const int parts = static_cast<int>(shares.share.front().size());
  const int label = 150, cell = std::clamp(900 / parts, 4, 40), row = 18, top = 40;
  const int width = label + parts * cell + 20, height = top + row * static_cast<int>(network.layers.size()) + 30;
  out << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"10\" y=\"20\" font-size=\"13\">{2}</text>\n",
      width, height, escaped(title));
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const int y = top + row * static_cast<int>(l);
    out << fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", label - 6, y + 13,
                       escaped(network.layers[l].name));
    for (int part = 0; part < parts; ++part) {
      const double share = shares.share[l][static_cast<std::size_t>(part)];
      if (share <= 0) continue;
      // Golden angle: neighbouring parts differ in hue.
      out << fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"hsl({:.0f},65%,45%)\" fill-opacity=\"{:.3f}\">"
          "<title>{}: part {}, {:.2f} %</title></rect>\n",
          label + part * cell, y, cell - 1, row - 2, static_cast<double>(part * 137 % 360), 0.25 + 0.75 * share,
          escaped(network.layers[l].name), part, 100 * share);
    }
  }
  out << fmt::format("<text x=\"{}\" y=\"{}\">parts 0 to {}</text>\n</svg>\n", label, height - 10, parts - 1);
}

}  // namespace epocast
