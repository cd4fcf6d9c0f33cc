#include "experiments/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "experiments/svg.hpp"
#include "sim/config.hpp"
#include "sim/error.hpp"

namespace epocast {
namespace {

constexpr double kLeft = 80, kTop = 40, kWidth = 560, kHeight = 340;

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

  using enum SvgAnchor;
  constexpr double kRight = kLeft + kWidth, kBottom = kTop + kHeight;
  SvgPicture picture(kRight + 40, kBottom + 56 + 18 * static_cast<double>(lines.size()), 13);
  for (double value = 0; value <= top * 1.0001; value += y_tick) {
    picture.path(fmt::format("M{} {:.1f} H{}", kLeft, y(value), kRight), "#ddd");
    picture.text(kLeft - 6, y(value) + 4, fmt::format("{:g}", value), {.anchor = end});
  }
  const double x_tick = tick_distance(high - low);
  for (double at = std::ceil(low / x_tick) * x_tick; at <= high * 1.0001; at += x_tick)
    picture.text(x(at), kBottom + 18, fmt::format("{:g}", std::abs(at) < x_tick / 1e6 ? 0 : at), {.anchor = middle});
  picture.text(kLeft, 24, column);
  picture.text(kRight, kBottom + 36, axis, {.anchor = end});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* colour = series_colour(i);
    std::string path;
    for (const auto& [at, value] : lines[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x(at), y(value));
      picture.circle(x(at), y(value), 3, colour);
    }
    picture.path(path, colour, 1.5);
    const double legend = kBottom + 54 + 18 * static_cast<double>(i);
    picture.path(fmt::format("M{} {:.1f} h14", kLeft, legend - 4), colour, 3);
    picture.text(kLeft + 22, legend, lines[i].name);
  }
  return picture.document();
}

}  // namespace epocast
