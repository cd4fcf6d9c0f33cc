#pragma once
// A column of results over a sweep axis, as a picture.

#include <string>
#include <vector>

#include "experiments/result.hpp"

namespace epocast {

/// Throws ConfigError with the nearest name if results have no such column.
void check_plot_column(const std::string& column);

/// An SVG document with a line for each combination of the other axes' values (and study, if there are several). `x` is
/// the first axis whose values are all numbers, at least two different ones. Scenarios without a result or without the
/// column's value are left out.
/// Throws ConfigError if there is no such axis or nothing to draw.
std::string line_plot_svg(const std::vector<ScenarioResult>& results, const std::string& column);

}  // namespace epocast
