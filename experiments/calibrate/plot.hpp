#pragma once
// A picture of how well a fit predicts: measured against predicted time, both logarithmic.

#include <string>
#include <vector>

namespace epocast {

struct PlotPoint {
  double measured = 0;   ///< [s]
  double predicted = 0;  ///< [s]
};
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;
};

/// An SVG document: a square with a legend below. REQUIRES a point with positive times.
std::string scatter_svg(const std::string& title, const std::string& predicted_axis,
                        const std::vector<PlotSeries>& series);

}  // namespace epocast
