#pragma once
// What a ruler says of steps: the rule that a fit by simulation has to beat.

#include <optional>
#include <vector>

namespace epocast {

/// A measured step.
struct RulerPoint {
  double workers = 1, batch = 1;  ///< the batch is one worker's
  double seconds = 0;
};

/// Each step's time [s] by a ruler laid through the others: a + b x batch + c x log2(workers), by least squares of
/// relative errors, without the terms that do not vary. Nothing where the others do not determine it.
std::vector<std::optional<double>> ruler_left_out(const std::vector<RulerPoint>& points);

}  // namespace epocast
