#include "experiments/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

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

/// The first axis that all scenarios have with numbers, and that varies.
std::string numeric_axis(const std::vector<PlotAxes>& scenarios) {
  for (const auto& [axis, unused] : scenarios.front()) {
    std::set<double> values;
    const bool numeric = std::ranges::all_of(scenarios, [&, &axis = axis](const PlotAxes& axes) {
      for (const auto& [name, text] : axes)
        if (name == axis)
          if (const auto value = number(text)) return values.insert(*value), true;
      return false;
    });
    if (numeric && values.size() > 1) return axis;
  }
  throw ConfigError("--plot needs a sweep axis of at least two numbers, such as `sweep: {workers: [1, 2, 4]}`");
}

/// The options of "server(mode=sync placement=even)": "mode=sync" and "placement=even".
std::vector<std::string> options_in(const std::string& label) {
  std::vector<std::string> out;
  const std::size_t open = label.find('(');
  if (open == std::string::npos || !label.ends_with(')')) return out;
  int depth = 0;
  bool quoted = false, fresh = true;
  for (const char c : label.substr(open + 1, label.size() - open - 2)) {
    quoted ^= c == '"';
    if (!quoted) depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c == ' ' && depth == 0 && !quoted) {
      fresh = true;
      continue;
    }
    if (std::exchange(fresh, false)) out.emplace_back();
    out.back() += c;
  }
  return out;
}

/// Labels of an axis without the options that all of them share, which tell no line from another.
std::map<std::string, std::string> short_labels(const std::set<std::string>& labels) {
  std::vector<std::string> shared = options_in(*labels.begin());
  for (const std::string& label : labels) {
    const std::vector<std::string> own = options_in(label);
    std::erase_if(shared, [&](const std::string& option) { return std::ranges::find(own, option) == own.end(); });
  }
  std::map<std::string, std::string> out;
  for (const std::string& label : labels) {
    std::vector<std::string> rest = options_in(label);
    std::erase_if(rest, [&](const std::string& option) { return std::ranges::find(shared, option) != shared.end(); });
    std::string text = label;
    if (!shared.empty() && labels.size() > 1) {
      text = label.substr(0, label.find('('));
      if (!rest.empty()) text += fmt::format("({})", fmt::join(rest, " "));
    }
    out.emplace(label, text);
  }
  return out;
}

std::vector<Line> lines_of(const std::vector<const ScenarioResult*>& results, const std::string& x,
                           const std::string& column) {
  const bool several = std::any_of(results.begin(), results.end(),
                                   [&](const ScenarioResult* r) { return r->study != results.front()->study; });
  std::map<std::string, std::set<std::string>> labels;  // by axis
  for (const ScenarioResult* result : results)
    for (const auto& [axis, text] : result->axes) labels[axis].insert(text);
  std::map<std::string, std::map<std::string, std::string>> shown;
  for (const auto& [axis, texts] : labels) shown.emplace(axis, short_labels(texts));
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
        name += (name.empty() ? "" : ", ") + shown.at(axis).at(text);
    }
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
    if (line == lines.end()) line = lines.insert(line, {name, {}});
    if (!line->points.emplace(at, row[column].get<double>()).second)
      throw ConfigError("--plot: two results" + (name.empty() ? "" : " of " + name) + " stand at " + x + "=" +
                        fmt::format("{:g}", at) + "; plot fewer studies, or give them different names");
  }
  if (lines.empty()) throw ConfigError("--plot-column: no result has a number in column '" + column + "'");
  return lines;
}

/// Where values lie along an axis 0..1, and which are labelled.
class Scale {
 public:
  /// From the smallest to the largest value; logarithmic where they span decades, if it may be. `round_up`: to the next
  /// labels outside, and, where linear, from zero.
  Scale(const std::set<double>& values, bool round_up, PlotScales scales);

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

Scale::Scale(const std::set<double>& values, bool round_up, PlotScales scales)
    : low_(*values.begin()), high_(*values.rbegin()) {
  constexpr double kDecades = 20;  // in linear axes, smaller values lie on top of each other
  logarithmic_ = scales == PlotScales::by_values && low_ > 0 && high_ > kDecades * low_;
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

/// The i-th line's mark. Each can be seen where others lie on top of each other.
void draw_mark(SvgPicture& picture, std::size_t i, double x, double y, const char* colour) {
  switch (i % 4) {
    case 0: return picture.circle(x, y, 3, colour);
    case 1: return picture.ring(x, y, 5, colour);
    case 2: return picture.path(fmt::format("M{:.1f} {:.1f} h8 v8 h-8 z", x - 4, y - 4), colour);
    default: return picture.path(fmt::format("M{:.1f} {:.1f} l7 7 l-7 7 l-7 -7 z", x, y - 7), colour);
  }
}

}  // namespace

void check_plot(const std::vector<PlotAxes>& scenarios, const std::string& column) {
  const nlohmann::ordered_json row = to_json(ScenarioResult{});
  std::vector<std::string> names;
  for (const auto& [name, value] : row.items())
    if (value.is_number() || (value.is_null() && name != "fits_memory")) names.push_back(name);
  if (!row.contains(column))
    throw ConfigError("--plot-column: there is no column '" + column + "'" + name_hint(column, names));
  if (std::ranges::find(names, column) == names.end())
    throw ConfigError(
        fmt::format("--plot-column: column '{}' holds no numbers (those that do: {})", column, fmt::join(names, ", ")));
  if (!scenarios.empty()) numeric_axis(scenarios);
}

std::string line_plot_svg(const std::vector<ScenarioResult>& results, const std::string& column) {
  std::vector<const ScenarioResult*> drawn;
  for (const ScenarioResult& result : results)
    if (result.error.empty()) drawn.push_back(&result);
  if (drawn.empty()) throw ConfigError("--plot: no scenario has a result");
  std::vector<PlotAxes> axes;
  for (const ScenarioResult* result : drawn) axes.push_back(result->axes);
  const std::string axis = numeric_axis(axes);
  return lines_svg(lines_of(drawn, axis, column), axis, column, true);
}

std::string lines_svg(const std::vector<PlotLine>& lines, const std::string& axis, const std::string& column,
                      bool marks, PlotScales scales) {
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
  const Scale x_scale(across, false, scales), y_scale(up, true, scales);
  const auto x = [&](double at) { return kLeft + kWidth * x_scale.along(at); };
  const auto y = [&](double value) { return kTop + kHeight * (1 - y_scale.along(value)); };

  using enum SvgAnchor;
  constexpr double kRight = kLeft + kWidth, kBottom = kTop + kHeight;
  SvgPicture picture(std::max(kRight, kLeft + legend_width) + 40, kBottom + 62 + 18 * static_cast<double>(lines.size()),
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
      if (lines[i].steps && !path.empty())
        path += fmt::format(" H{:.1f} V{:.1f}", x(at), y(value));
      else
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x(at), y(value));
      if (marks) draw_mark(picture, i, x(at), y(value), colour);
    }
    picture.path(path, colour, 1.5, series_dashes(i));
    const double legend = kBottom + 60 + 18 * static_cast<double>(i);
    picture.path(fmt::format("M{} {:.1f} h26", kLeft, legend - 4), colour, marks ? 1.5 : 3, series_dashes(i));
    if (marks) draw_mark(picture, i, kLeft + 13, legend - 4, colour);
    picture.text(kLeft + kLegend, legend, lines[i].name);
  }
  return picture.document();
}

}  // namespace epocast
