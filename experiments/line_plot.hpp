#pragma once
// A column of results over a sweep axis, as a picture.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/result.hpp"

namespace epocast {

/// One line of a picture.
struct PlotLine {
  std::string name;
  std::map<double, double> points;
  std::map<double, std::pair<double, double>> band = {};  ///< lowest and highest, drawn behind the line
  bool steps = false;                                     ///< each point's value holds until the next
};

/// Where an axis is logarithmic: where its values span decades, or nowhere.
enum class PlotScales { by_values, linear };

/// An SVG document with these lines. `marks`: points too, of another shape for each line, so that lines that coincide
/// are told apart. REQUIRES: at least one point.
std::string lines_svg(const std::vector<PlotLine>& lines, const std::string& x_name, const std::string& y_name,
                      bool marks, PlotScales scales = PlotScales::by_values);

/// Axes of a scenario and its values on them.
using PlotAxes = std::vector<std::pair<std::string, std::string>>;

/// What is known before anything is simulated: throws ConfigError if results have no such column, with the nearest
/// name, if it holds no numbers, or if none of the scenarios' axes can be drawn over.
void check_plot(const std::vector<PlotAxes>& scenarios, const std::string& column);

/// An SVG document with a line for each combination of the other axes' values (and study, if there are several). `x` is
/// the first axis whose values are all numbers, at least two different ones. Scenarios without a result or without the
/// column's value are left out.
/// Throws ConfigError if there is no such axis or nothing to draw.
std::string line_plot_svg(const std::vector<ScenarioResult>& results, const std::string& column);

}  // namespace epocast
