#include "experiments/calibrate/step_ruler.hpp"

#include <algorithm>
#include <cmath>

#include "costmodels/dense.hpp"

namespace epocast {
namespace {

bool varies(const std::vector<RulerPoint>& points, std::size_t left_out, double RulerPoint::*what) {
  const RulerPoint& first = points[left_out == 0 ? 1 : 0];
  for (std::size_t p = 0; p < points.size(); ++p)
    if (p != left_out && points[p].*what != first.*what) return true;
  return false;
}

/// Of a matrix with ones on its diagonal: below, its columns are dependent but for rounding.
constexpr double kLeastDeterminant = 1e-9;

std::optional<double> without(const std::vector<RulerPoint>& points, std::size_t left_out) {
  const bool by_batch = varies(points, left_out, &RulerPoint::batch);
  const bool by_workers = varies(points, left_out, &RulerPoint::workers);
  const auto terms = [&](const RulerPoint& point) {
    std::vector<double> out{1};
    if (by_batch) out.push_back(point.batch);
    if (by_workers) out.push_back(std::log2(point.workers));
    return out;
  };
  const std::size_t n = terms(points.front()).size();
  if (points.size() - 1 < n) return std::nullopt;
  SquareMatrix normal(n);
  std::vector<double> right(n);
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (p == left_out) continue;
    const std::vector<double> x = terms(points[p]);
    for (std::size_t a = 0; a < n; ++a) {
      right[a] += x[a] / points[p].seconds;
      for (std::size_t b = 0; b < n; ++b) normal(a, b) += x[a] * x[b] / (points[p].seconds * points[p].seconds);
    }
  }
  std::vector<double> scale;
  for (std::size_t a = 0; a < n; ++a) scale.push_back(std::sqrt(normal(a, a)));
  for (std::size_t a = 0; a < n; ++a) {
    right[a] /= scale[a];
    for (std::size_t b = 0; b < n; ++b) normal(a, b) /= scale[a] * scale[b];
  }
  const Cholesky factors(normal);
  if (!factors.ok() || factors.log_determinant() < std::log(kLeastDeterminant)) return std::nullopt;
  const std::vector<double> solved = factors.solve(right), x = terms(points[left_out]);
  double seconds = 0;
  for (std::size_t a = 0; a < n; ++a) seconds += solved[a] * x[a] / scale[a];
  return seconds;
}

}  // namespace

std::vector<std::optional<double>> ruler_left_out(const std::vector<RulerPoint>& points) {
  std::vector<std::optional<double>> out;
  for (std::size_t p = 0; p < points.size(); ++p) out.push_back(points.size() < 2 ? std::nullopt : without(points, p));
  return out;
}

}  // namespace epocast
