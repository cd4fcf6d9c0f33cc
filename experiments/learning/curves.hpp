#pragma once
// Learning curves on their way from the simulating process to tables, files and pictures.

#include <iosfwd>
#include <string>
#include <vector>

#include "experiments/result.hpp"
#include "learning/replay.hpp"

namespace epocast {

/// JSON: an array with an object for each seed.
std::string pack_curves(const std::vector<learning::LearningOutcome>& outcomes);
std::vector<learning::LearningOutcome> unpack_curves(const std::string& text);

/// Every point of every curve: study, axes, seed, time_s, epoch, bytes, loss, accuracy, theta, rate, phase.
void write_curves_csv(std::ostream& out, const std::vector<ScenarioResult>& results);

/// Columns that curves can be drawn over, and of.
std::vector<std::string> curve_columns();

/// An SVG document: `y` over `x`, a line for each scenario, the mean over its seeds at equal epochs, with a band from
/// the lowest to the highest. Throws ConfigError for unknown columns, or if there is nothing to draw.
std::string curves_svg(const std::vector<ScenarioResult>& results, const std::string& x, const std::string& y);

}  // namespace epocast
