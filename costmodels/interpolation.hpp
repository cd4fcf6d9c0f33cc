#pragma once
// Time as a function of batch size from a few measured points.

#include <map>

namespace epocast {

/// Measured times [s] by batch size.
using TimeByBatch = std::map<double, double>;

/// Time at `batch`: linear between the two measured neighbours. Outside them the line through the two nearest points is
/// continued (a fixed cost plus a cost per sample), but never below what keeps time sane: below the smallest batch at
/// least proportional to the batch, above the largest batch at least the last time. With a single point, proportional.
/// REQUIRES at least one point and positive batches.
double time_at(const TimeByBatch& points, double batch);

}  // namespace epocast
