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

constexpr double kLeft = 80, kTop = 40, kWidth = 560, kHeight = 340;  // pixels
constexpr double kLegend = 34;                                        // from the left of the legend to its names
constexpr int kFont = 13;

using Line = PlotLine;

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
    const bool numeric = std::all_of(results.begin(), results.end(), [&, &axis = axis](const ScenarioResult* result) {
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

/// Where values lie along an axis 0..1, and which are labelled.
class Scale {
 public:
  /// From the smallest to the largest value; logarithmic where they span decades. `round_up`: to the next labels
  /// outside, and, where linear, from zero.
  Scale(const std::set<double>& values, bool round_up);

  double along(double value) const {
    return logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  }
  const std::vector<double>& labels() const { return labels_; }

 private:
  void label_linear(bool round_up);
  void label_logarithmic(const std::set<double>& values, bool round_up);

  bool logarithmic_ = false;
  double low_ = 0, high_ = 1;
  std::vector<double> labels_;
};

Scale::Scale(const std::set<double>& values, bool round_up) : low_(*values.begin()), high_(*values.rbegin()) {
  constexpr double kDecades = 20;  // in linear axes, smaller values lie on top of each other
  logarithmic_ = low_ > 0 && high_ > kDecades * low_;
  if (round_up && !logarithmic_) low_ = std::min(low_, 0.0);
  if (high_ == low_) high_ = low_ + 1;
  if (logarithmic_)
    label_logarithmic(values, round_up);
  else
    label_linear(round_up);
}

/// 1, 2 or 5 times a power of ten apart: about five of them.
void Scale::label_linear(bool round_up) {
  const double rough = (high_ - low_) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  double tick = 10 * power;
  for (const double step : {5.0, 2.0, 1.0})
    if (step * power >= rough) tick = step * power;
  if (round_up) high_ = std::ceil(high_ / tick * (1 - 1e-12)) * tick;
  for (double at = std::ceil(low_ / tick) * tick; at <= high_ + tick * 1e-6; at += tick)
    labels_.push_back(std::abs(at) < tick * 1e-6 ? 0 : at);
}

/// The values themselves if they are few, else powers of ten, with 2 and 5 times these if those are few.
void Scale::label_logarithmic(const std::set<double>& values, bool round_up) {
  constexpr std::size_t kFew = 14;
  if (!round_up && values.size() <= kFew) {
    labels_.assign(values.begin(), values.end());
    return;
  }
  const bool fine = high_ < 1000 * low_;
  std::vector<double> ticks;
  for (double decade = std::floor(std::log10(low_)); decade <= std::ceil(std::log10(high_)); ++decade)
    for (const double step : {1.0, 2.0, 5.0})
      if (step == 1 || fine) ticks.push_back(step * std::pow(10, decade));
  if (round_up) {
    low_ = *std::prev(std::upper_bound(ticks.begin(), ticks.end(), low_ * (1 + 1e-12)));
    high_ = *std::lower_bound(ticks.begin(), ticks.end(), high_ * (1 - 1e-12));
  }
  for (const double tick : ticks)
    if (tick >= low_ * (1 - 1e-12) && tick <= high_ * (1 + 1e-12)) labels_.push_back(tick);
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
  return lines_svg(lines_of(drawn, axis, column), axis, column, true);
}

std::string lines_svg(const std::vector<PlotLine>& lines, const std::string& axis, const std::string& column,
                      bool marks) {
  std::set<double> across, up;
  double legend_width = 0;
  for (const Line& line : lines) {
    legend_width = std::max(legend_width, kLegend + text_width(line.name, kFont));
    for (const auto& [at, value] : line.points) {
      across.insert(at);
      up.insert(value);
    }
    for (const auto& [at, limits] : line.band) {
      up.insert(limits.first);
      up.insert(limits.second);
    }
  }
  const Scale x_scale(across, false), y_scale(up, true);
  const auto x = [&](double at) { return kLeft + kWidth * x_scale.along(at); };
  const auto y = [&](double value) { return kTop + kHeight * (1 - y_scale.along(value)); };

  using enum SvgAnchor;
  constexpr double kRight = kLeft + kWidth, kBottom = kTop + kHeight;
  SvgPicture picture(std::max(kRight + 40, kLeft + legend_width), kBottom + 62 + 18 * static_cast<double>(lines.size()),
                     kFont);
  for (const double value : y_scale.labels()) {
    picture.path(fmt::format("M{} {:.1f} H{}", kLeft, y(value), kRight), "#ddd");
    picture.text(kLeft - 6, y(value) + 4, fmt::format("{:g}", value), {.anchor = end});
  }
  double free_from = 0;  // labels do not overlap
  for (const double at : x_scale.labels()) {
    const std::string label = fmt::format("{:g}", at);
    const double half = text_width(label, kFont) / 2;
    picture.path(fmt::format("M{:.1f} {} v4", x(at), kBottom), "#888");
    if (x(at) - half < free_from) continue;
    picture.text(x(at), kBottom + 18, label, {.anchor = middle});
    free_from = x(at) + half + 4;
  }
  picture.text(kLeft, 24, column);
  picture.text(kRight, kBottom + 38, axis, {.anchor = end});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* colour = series_colour(i);
    for (const auto& [at, limits] : lines[i].band)
      picture.path(fmt::format("M{:.1f} {:.1f} V{:.1f}", x(at), y(limits.first), y(limits.second)), colour, 0.5);
    std::string path;
    for (const auto& [at, value] : lines[i].points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x(at), y(value));
      if (marks) picture.circle(x(at), y(value), 3, colour);
    }
    picture.path(path, colour, 1.5, series_dashes(i));
    const double legend = kBottom + 60 + 18 * static_cast<double>(i);
    picture.path(fmt::format("M{} {:.1f} h26", kLeft, legend - 4), colour, 3, series_dashes(i));
    picture.text(kLeft + kLegend, legend, lines[i].name);
  }
  return picture.document();
}

}  // namespace epocast
