#include "costmodels/residual_interpolation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

namespace epocast {
namespace {

const double kRoot3 = std::sqrt(3.0);

bool is_amount(const InterpolationSettings& s, std::size_t coordinate) {
  return std::ranges::find(s.amounts, coordinate) != s.amounts.end();
}

/// How alike two points of one kind are: by all coordinates, and by those that are no amounts.
struct Likeness {
  struct Process {
    double share;  ///< of the variance
    double distance;
    double decay() const { return share > 0 ? share * std::exp(-kRoot3 * distance) : 0; }
    double correlation() const { return (1 + kRoot3 * distance) * decay(); }
  };
  Process own, shared;

  double correlation() const { return own.correlation() + shared.correlation(); }
};

/// Equal shares of the variance are an assumption, not fitted.
Likeness likeness(const ScaledPoint& a, const ScaledPoint& b) {
  if (a.kind != b.kind) return {{0, 0}, {0, 0}};
  const auto squares = [&](std::size_t from, std::size_t to) {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += (a.at[i] - b.at[i]) * (a.at[i] - b.at[i]);
    return sum;
  };
  const double rest = squares(0, a.rest);
  const double amount = squares(a.rest, a.at.size());
  const double shared = a.rest == a.at.size() ? 0 : 0.5;
  return {{1 - shared, std::sqrt(rest + amount)}, {shared, std::sqrt(rest)}};
}

ScaledPoint scaled(const InterpolationPoint& point, const InterpolationSettings& s) {
  ScaledPoint out{point.kind};
  out.at.reserve(s.lengths.size());
  for (const bool amounts : {false, true}) {
    for (std::size_t i = 0; i < s.lengths.size(); ++i)
      if (is_amount(s, i) == amounts) out.at.push_back(point.at[i] / s.lengths[i]);
    if (!amounts) out.rest = out.at.size();
  }
  return out;
}

std::vector<ScaledPoint> scaled(const std::vector<InterpolationPoint>& points, const InterpolationSettings& s) {
  std::vector<ScaledPoint> out;
  out.reserve(points.size());
  for (const InterpolationPoint& point : points) out.push_back(scaled(point, s));
  return out;
}

SquareMatrix covariance(const InterpolationSettings& s, const std::vector<ScaledPoint>& points) {
  SquareMatrix k(points.size());
  const double variance = s.amplitude * s.amplitude;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) k(i, j) = k(j, i) = variance * likeness(points[i], points[j]).correlation();
    k(i, i) = variance + s.noise * s.noise;
  }
  return k;
}

// Before seeing data: logarithms of lengths, amplitude and noise are normal with these centres and deviations.
constexpr double kLength = 3, kLengthSpread = 0.8;
constexpr double kAmplitude = 0.3, kNoise = 0.03, kSizeSpread = 0.7;

/// Logarithms of lengths, then of amplitude and noise.
InterpolationSettings settings_of(const std::vector<double>& h, const std::vector<std::size_t>& amounts) {
  InterpolationSettings s;
  s.amounts = amounts;
  for (std::size_t i = 0; i + 2 < h.size(); ++i) s.lengths.push_back(std::exp(h[i]));
  s.amplitude = std::exp(h[h.size() - 2]);
  s.noise = std::exp(h[h.size() - 1]);
  return s;
}

/// Gradient of the log posterior density by the elements of `h` (Rasmussen and Williams, eq. 5.9): for each parameter
/// p, (tr(a a^T dK/dp) - tr(K^-1 dK/dp)) / 2, a = K^-1 y. Empty if the covariance is singular.
std::vector<double> posterior_slope(const std::vector<double>& h, const std::vector<InterpolationPoint>& points,
                                    const std::vector<double>& y, const std::vector<std::size_t>& amounts) {
  const InterpolationSettings s = settings_of(h, amounts);
  const std::size_t dimensions = s.lengths.size();
  const std::vector<ScaledPoint> at = scaled(points, s);
  const Cholesky factor(covariance(s, at));
  if (!factor.ok()) return {};
  const std::vector<double> a = factor.solve(y);
  const SquareMatrix inverse = factor.inverse();
  const double variance = s.amplitude * s.amplitude;
  std::vector<double> slope(h.size(), 0.0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double own = 0.5 * (a[i] * a[i] - inverse(i, i));
    slope[dimensions] += own * 2 * variance;
    slope[dimensions + 1] += own * 2 * s.noise * s.noise;
    for (std::size_t j = 0; j < i; ++j) {
      const double weight = a[i] * a[j] - inverse(i, j);  // both triangles
      if (points[i].kind != points[j].kind) continue;
      const Likeness alike = likeness(at[i], at[j]);
      slope[dimensions] += weight * 2 * variance * alike.correlation();
      for (std::size_t c = 0; c < dimensions; ++c) {
        const double step = (points[i].at[c] - points[j].at[c]) / s.lengths[c];
        const double decay = alike.own.decay() + (is_amount(s, c) ? 0 : alike.shared.decay());
        slope[c] += weight * 3 * variance * decay * step * step;
      }
    }
  }
  for (std::size_t c = 0; c < dimensions; ++c) slope[c] -= (h[c] - std::log(kLength)) / (kLengthSpread * kLengthSpread);
  slope[dimensions] -= (h[dimensions] - std::log(kAmplitude)) / (kSizeSpread * kSizeSpread);
  slope[dimensions + 1] -= (h[dimensions + 1] - std::log(kNoise)) / (kSizeSpread * kSizeSpread);
  return slope;
}

}  // namespace

ResidualInterpolation::ResidualInterpolation(InterpolationSettings settings, std::vector<InterpolationPoint> points,
                                             std::vector<double> residuals)
    : settings_(std::move(settings)),
      points_(std::move(points)),
      scaled_(scaled(points_, settings_)),
      residuals_(std::move(residuals)),
      factor_(covariance(settings_, scaled_)) {
  assert(points_.size() == residuals_.size());
  if (factor_.ok()) weights_ = factor_.solve(residuals_);
}

std::vector<double> ResidualInterpolation::covariances(const InterpolationPoint& point) const {
  const ScaledPoint here = scaled(point, settings_);
  const double variance = settings_.amplitude * settings_.amplitude;
  std::vector<double> out;
  out.reserve(scaled_.size());
  for (const ScaledPoint& measured : scaled_) out.push_back(variance * likeness(here, measured).correlation());
  return out;
}

double ResidualInterpolation::mean(const InterpolationPoint& point) const {
  if (weights_.empty()) return 0;
  const auto [known, is_new] = means_.try_emplace({point.at, point.kind}, 0.0);
  if (is_new) {
    const std::vector<double> k = covariances(point);
    for (std::size_t i = 0; i < k.size(); ++i) known->second += k[i] * weights_[i];
  }
  return known->second;
}

double ResidualInterpolation::uncertainty(const InterpolationPoint& point) const {
  if (weights_.empty()) return 1;
  const std::vector<double> y = factor_.solve_lower(covariances(point));
  double explained = 0;
  for (double x : y) explained += x * x;
  return std::sqrt(std::clamp(1 - explained / (settings_.amplitude * settings_.amplitude), 0.0, 1.0));
}

InterpolationSettings fit_interpolation(const std::vector<InterpolationPoint>& points,
                                        const std::vector<double>& residuals, std::vector<std::size_t> amounts) {
  // Climbs with steps that grow while the slope keeps its sign and halve when it changes (Riedmiller, Braun 1993).
  std::vector<double> h(points.empty() ? 0 : points.front().at.size(), std::log(kLength));
  h.push_back(std::log(kAmplitude));
  h.push_back(std::log(kNoise));
  std::vector<double> step(h.size(), 0.2);
  std::vector<double> last(h.size(), 0.0);
  for (int iteration = 0; iteration < 40 && points.size() > 1; ++iteration) {
    std::vector<double> slope = posterior_slope(h, points, residuals, amounts);
    if (slope.empty()) break;
    for (std::size_t i = 0; i < h.size(); ++i) {
      if (slope[i] * last[i] > 0) step[i] = std::min(step[i] * 1.2, 0.5);
      if (slope[i] * last[i] < 0) {
        step[i] *= 0.5;
        slope[i] = 0;  // stay for one round after a change of sign
      }
      if (slope[i] != 0) h[i] = std::clamp(h[i] + (slope[i] > 0 ? step[i] : -step[i]), std::log(1e-3), std::log(1e3));
    }
    last = std::move(slope);
  }
  return settings_of(h, amounts);
}

}  // namespace epocast
