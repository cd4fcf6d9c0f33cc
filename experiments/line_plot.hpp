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
};

/// An SVG document with these lines, an axis logarithmic where its values span decades. `marks`: points as circles.
/// REQUIRES: at least one point.
std::string lines_svg(const std::vector<PlotLine>& lines, const std::string& x_name, const std::string& y_name,
                      bool marks);

/// Throws ConfigError with the nearest name if results have no such column.
void check_plot_column(const std::string& column);

/// An SVG document with a line for each combination of the other axes' values (and study, if there are several). `x` is
/// the first axis whose values are all numbers, at least two different ones. Scenarios without a result or without the
/// column's value are left out.
/// Throws ConfigError if there is no such axis or nothing to draw.
std::string line_plot_svg(const std::vector<ScenarioResult>& results, const std::string& column);

}  // namespace epocast
