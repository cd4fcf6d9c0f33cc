#include "costmodels/robust_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "costmodels/dense.hpp"

namespace epocast {
namespace {

constexpr double kFarthest = 6;  // spreads from the expected value

/// The problem in z = ln(value / expected) / spread of the free parameters.
class Problem {
 public:
  Problem(const std::vector<FitParameter>& parameters, const LogErrors& errors, double scale)
      : parameters_(parameters), errors_(errors), scale_(scale) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].spread > 0) free_.push_back(i);
  }

  const std::vector<std::size_t>& free() const { return free_; }

  std::vector<double> values(const std::vector<double>& z) const {
    std::vector<double> out;
    for (const FitParameter& p : parameters_) out.push_back(p.expected);
    for (std::size_t f = 0; f < free_.size(); ++f) out[free_[f]] *= std::exp(z[f] * parameters_[free_[f]].spread);
    return out;
  }

  std::vector<double> positions(const std::vector<double>& values) const {
    std::vector<double> z;
    for (const std::size_t i : free_) {
      const FitParameter& p = parameters_[i];
      z.push_back(std::clamp(std::log(values[i] / p.expected) / p.spread, -kFarthest, kFarthest));
    }
    return z;
  }

  std::vector<double> scaled_errors(const std::vector<double>& z) const {
    std::vector<double> e = errors_(values(z));
    for (double& x : e) x /= scale_;
    return e;
  }

  static double loss(const std::vector<double>& e, const std::vector<double>& z) {
    double sum = 0;
    for (double x : e) sum += 2 * (std::sqrt(1 + x * x) - 1);
    for (double x : z) sum += x * x;
    return std::isfinite(sum) ? sum : 1e300;
  }

  /// Gauss-Newton matrix (with the prior's) and negative gradient, each measurement weighted by rho'.
  void linearise(const std::vector<double>& z, const std::vector<double>& e, SquareMatrix& a,
                 std::vector<double>& b) const {
    constexpr double kStep = 1e-5;
    const std::size_t n = free_.size();
    std::vector<std::vector<double>> slopes;
    for (std::size_t f = 0; f < n; ++f) {
      std::vector<double> moved = z;
      moved[f] += kStep;
      std::vector<double> slope = scaled_errors(moved);
      for (std::size_t i = 0; i < e.size(); ++i) slope[i] = (slope[i] - e[i]) / kStep;
      slopes.push_back(std::move(slope));
    }
    a = SquareMatrix(n);
    b.assign(n, 0);
    for (std::size_t f = 0; f < n; ++f) {
      a(f, f) = 1;
      b[f] = -z[f];
    }
    for (std::size_t i = 0; i < e.size(); ++i) {
      const double weight = 1 / std::sqrt(1 + e[i] * e[i]);
      for (std::size_t f = 0; f < n; ++f) {
        b[f] -= weight * slopes[f][i] * e[i];
        for (std::size_t g = 0; g <= f; ++g) a(f, g) += weight * slopes[f][i] * slopes[g][i];
      }
    }
  }

 private:
  const std::vector<FitParameter>& parameters_;
  const LogErrors& errors_;
  double scale_;
  std::vector<std::size_t> free_;
};

/// Where the loss is least in a valley that `z` lies in.
std::vector<double> minimise(const Problem& problem, std::vector<double> z) {
  const std::size_t n = problem.free().size();
  std::vector<double> e = problem.scaled_errors(z);
  double loss = Problem::loss(e, z);
  double damping = 1e-2;
  SquareMatrix a(n);
  std::vector<double> b;
  for (int iteration = 0; iteration < 60 && n > 0; ++iteration) {
    problem.linearise(z, e, a, b);
    bool better = false;
    double gained = 0;
    for (int attempt = 0; attempt < 12 && !better; ++attempt) {
      SquareMatrix damped = a;
      for (std::size_t f = 0; f < n; ++f) damped(f, f) *= 1 + damping;
      const Cholesky factor(std::move(damped));
      if (factor.ok()) {
        std::vector<double> moved = factor.solve(b);
        for (std::size_t f = 0; f < n; ++f) moved[f] = std::clamp(z[f] + moved[f], -kFarthest, kFarthest);
        std::vector<double> next = problem.scaled_errors(moved);
        const double next_loss = Problem::loss(next, moved);
        if (next_loss < loss) {
          better = true;
          gained = loss - next_loss;
          z = std::move(moved);
          e = std::move(next);
          loss = next_loss;
        }
      }
      damping = better ? std::max(damping / 5, 1e-9) : damping * 4;
    }
    if (!better || gained < 1e-7 * loss) break;
  }
  return z;
}

/// 1.4826 times the median of |e|: the standard deviation if errors were normal.
double robust_spread(std::vector<double> e) {
  if (e.empty()) return 0;
  for (double& x : e) x = std::abs(x);
  const auto middle = e.begin() + static_cast<std::ptrdiff_t>(e.size() / 2);
  std::nth_element(e.begin(), middle, e.end());
  return 1.4826 * *middle;
}

}  // namespace

std::vector<double> RobustFit::values() const {
  std::vector<double> out;
  for (const FittedParameter& p : parameters) out.push_back(p.value);
  return out;
}

RobustFit fit_robustly(const std::vector<FitParameter>& parameters, const LogErrors& errors, double error_scale,
                       const std::vector<double>& also_from) {
  const Problem problem(parameters, errors, error_scale);
  const auto loss = [&](const std::vector<double>& at) { return Problem::loss(problem.scaled_errors(at), at); };
  std::vector<double> z = minimise(problem, std::vector<double>(problem.free().size(), 0.0));
  if (!also_from.empty())
    if (std::vector<double> other = minimise(problem, problem.positions(also_from)); loss(other) < loss(z))
      z = std::move(other);
  const std::vector<double> values = problem.values(z);
  RobustFit out;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    out.parameters.push_back({parameters[i].name, parameters[i].unit, values[i], values[i], values[i]});
  if (z.empty()) return out;

  SquareMatrix a(z.size());
  std::vector<double> b;
  const std::vector<double> e = problem.scaled_errors(z);
  problem.linearise(z, e, a, b);
  const Cholesky factor(a);
  if (!factor.ok()) return out;
  const SquareMatrix covariance = factor.inverse();
  const double spread = std::max(robust_spread(e), 0.05);  // errors are never smaller than a twentieth of the usual
  for (std::size_t f = 0; f < z.size(); ++f) {
    const std::size_t i = problem.free()[f];
    const double half = 1.96 * std::min(1.0, spread * std::sqrt(covariance(f, f))) * parameters[i].spread;
    out.parameters[i].low = values[i] * std::exp(-half);
    out.parameters[i].high = values[i] * std::exp(half);
  }
  return out;
}

}  // namespace epocast
