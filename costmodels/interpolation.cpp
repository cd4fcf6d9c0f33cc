#include "costmodels/interpolation.hpp"

#include <algorithm>
#include <iterator>

namespace epocast {
namespace {

using Point = TimeByBatch::value_type;

double line_through(const Point& a, const Point& b, double x) {
  return a.second + (b.second - a.second) * (x - a.first) / (b.first - a.first);
}

}  // namespace

double time_at(const TimeByBatch& points, double batch) {
  const Point& first = *points.begin();
  const Point& last = *points.rbegin();
  if (points.size() == 1) return first.second * batch / first.first;
  if (batch < first.first)
    return std::max(line_through(first, *std::next(points.begin()), batch), first.second * batch / first.first);
  if (batch > last.first) return std::max(line_through(*std::next(points.rbegin()), last, batch), last.second);
  const auto above = points.lower_bound(batch);
  if (above->first == batch) return above->second;  // exactly what was measured, without rounding
  return line_through(*std::prev(above), *above, batch);
}

}  // namespace epocast
