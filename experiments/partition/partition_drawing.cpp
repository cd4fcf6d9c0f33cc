#include "experiments/partition/partition_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "experiments/svg.hpp"

namespace epocast {
void draw_partition(std::ostream& out, const FilterNetwork& network, const LayerShares& shares,
                    const std::string& title) {
  const int parts = static_cast<int>(shares.share.front().size());
  const int label = 150, cell = std::clamp(900 / parts, 4, 40), row = 18, top = 48, font = 11;
  const int width = label + parts * cell + 20, height = top + row * static_cast<int>(network.layers.size()) + 30;
  SvgPicture picture(width, height, font);
  picture.text(10, 20, title, {.size = 13});
  int step = 1;  // between columns whose numbers do not touch
  for (const double room = text_width(std::to_string(parts - 1), font) + 4; step * cell < room;) ++step;
  for (int part = 0; part < parts; part += step)
    picture.text(label + part * cell + cell / 2.0, top - 6, std::to_string(part), {.anchor = SvgAnchor::middle});
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const std::string& name = network.layers[l].name;
    const int y = top + row * static_cast<int>(l);
    picture.text(label - 6, y + 13, name, {.anchor = SvgAnchor::end});
    for (int part = 0; part < parts; ++part) {
      const double share = shares.share[l][static_cast<std::size_t>(part)];
      if (share <= 0) continue;
      // Golden angle: neighbouring parts differ in hue.
      picture.rectangle(label + part * cell, y, cell - 1, row - 2, fmt::format("hsl({},65%,45%)", part * 137 % 360),
                        0.25 + 0.75 * share, fmt::format("{}: part {}, {:.2f} %", name, part, 100 * share));
    }
  }
  picture.text(label, height - 10, fmt::format("parts 0 to {}", parts - 1));
  out << picture.document();
}

}  // namespace epocast
