#include "experiments/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/config.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

constexpr double kLeft = 80, kTop = 40, kWidth = 560, kHeight = 340;
// Distinguishable also without colour vision (Okabe and Ito 2008).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#000000", "#999933"};

struct Line {
  std::string name;
  std::map<double, double> points;
};

std::optional<double> number(const std::string& text) {
  std::size_t used = 0;
  try {
    const double value = std::stod(text, &used);
    return used == text.size() && std::isfinite(value) ? std::optional(value) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The first axis that all results have with numbers, and that varies.
std::string numeric_axis(const std::vector<const ScenarioResult*>& results) {
  for (const auto& [axis, unused] : results.front()->axes) {
    std::set<double> values;
    const bool numeric = std::all_of(results.begin(), results.end(), [&](const ScenarioResult* result) {
      for (const auto& [name, text] : result->axes)
        if (name == axis)
          if (const auto value = number(text)) return values.insert(*value), true;
      return false;
    });
    if (numeric && values.size() > 1) return axis;
  }
  throw ConfigError("--plot needs a sweep axis of at least two numbers, such as `sweep: {workers: [1, 2, 4]}`");
}

std::vector<Line> lines_of(const std::vector<const ScenarioResult*>& results, const std::string& x,
                           const std::string& column) {
  const bool several = std::any_of(results.begin(), results.end(),
                                   [&](const ScenarioResult* r) { return r->study != results.front()->study; });
  std::vector<Line> lines;
  for (const ScenarioResult* result : results) {
    const nlohmann::ordered_json row = to_json(*result);
    if (!row.contains(column) || !row[column].is_number()) continue;
    std::string name = several ? result->study : "";
    double at = 0;
    for (const auto& [axis, text] : result->axes) {
      if (axis == x)
        at = *number(text);
      else
        name += (name.empty() ? "" : ", ") + text;
    }
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
    if (line == lines.end()) line = lines.insert(line, {name, {}});
    line->points[at] = row[column].get<double>();
  }
  if (lines.empty()) throw ConfigError("--plot-column: no result has a number in column '" + column + "'");
  return lines;
}

/// 1, 2 or 5 times a power of ten: about five of them in `range`.
double tick_distance(double range) {
  const double rough = range / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0})
    if (step * power >= rough) return step * power;
  return 10 * power;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

void check_plot_column(const std::string& column) {
  const nlohmann::ordered_json row = to_json(ScenarioResult{});
  if (row.contains(column)) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : row.items())
    if (value.is_number() || value.is_null()) names.push_back(name);
  throw ConfigError("--plot-column: there is no column '" + column + "'" + name_hint(column, names));
}

std::string line_plot_svg(const std::vector<ScenarioResult>& results, const std::string& column) {
  std::vector<const ScenarioResult*> drawn;
  for (const ScenarioResult& result : results)
    if (result.error.empty()) drawn.push_back(&result);
  if (drawn.empty()) throw ConfigError("--plot: no scenario has a result");
  const std::string axis = numeric_axis(drawn);
  const std::vector<Line> lines = lines_of(drawn, axis, column);

  double low = 1e300, high = -1e300, top = 0;
  for (const Line& line : lines)
    for (const auto& [at, value] : line.points) {
      low = std::min(low, at);
      high = std::max(high, at);
      top = std::max(top, value);
    }
  if (high == low) high = low + 1;
  const double y_tick = tick_distance(top > 0 ? top : 1);
  top = std::max(std::ceil(top / y_tick), 1.0) * y_tick;
  const auto x = [&](double at) { return kLeft + kWidth * (at - low) / (high - low); };
  const auto y = [&](double value) { return kTop + kHeight * (1 - value / top); };

  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"{:.0f}\" font-family=\"sans-serif\" "
                 "font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                 kTop + kHeight + 56 + 18 * static_cast<double>(lines.size()));
  for (double value = 0; value <= top * 1.0001; value += y_tick)
    fmt::format_to(to,
                   "<path d=\"M{} {:.1f} H{}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}"
                   "</text>\n",
                   kLeft, y(value), kLeft + kWidth, kLeft - 6, y(value) + 4, value);
  const double x_tick = tick_distance(high - low);
  for (double at = std::ceil(low / x_tick) * x_tick; at <= high * 1.0001; at += x_tick)
    fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", x(at), kTop + kHeight + 18,
                   std::abs(at) < x_tick / 1e6 ? 0 : at);
  fmt::format_to(to, "<text x=\"{}\" y=\"24\">{}</text>\n", kLeft, escaped(column));
  fmt::format_to(to, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft + kWidth, kTop + kHeight + 36,
                 escaped(axis));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* colour = kColours[i % std::size(kColours)];
    std::string path;
    for (const auto& [at, value] : lines[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x(at), y(value));
      fmt::format_to(to, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x(at), y(value), colour);
    }
    const double legend = kTop + kHeight + 54 + 18 * static_cast<double>(i);
    fmt::format_to(to, "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, colour);
    fmt::format_to(to,
                   "<path d=\"M{} {:.1f} h14\" stroke=\"{}\" stroke-width=\"3\"/><text x=\"{}\" y=\"{:.1f}\">{}"
                   "</text>\n",
                   kLeft, legend - 4, colour, kLeft + 22, legend, escaped(lines[i].name));
  }
  return out + "</svg>\n";
}

}  // namespace epocast
