#include "experiments/calibrate/step_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "costmodels/dense.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

constexpr double kErrorScale = 0.01;  // of ln time: errors below count by their squares, larger ones by their size
constexpr double kMostScatter = 0.2;
constexpr double kUnknownError = 0.05;  // of ln time, where there are no more steps than constants
constexpr double kLeastError = 1e-3;    // no step is known better than this
constexpr double kMove = 0.01;          // relative change of a constant for its slope
constexpr double kSettled = 1e-4;       // relative change of the constants
constexpr int kMostRounds = 12;
constexpr double kIndistinguishable = 0.95;  // correlation
constexpr double kUntold = 0.7;              // of the spread before seeing the data: what is left when they say nothing

/// Ends of the 95 % interval of Student's t distribution, in standard deviations.
double student_t(int freedom) {
  constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  if (freedom < 1) return kQuantiles[0];
  return freedom <= 10 ? kQuantiles[freedom - 1] : 1.96 + 2.4 / freedom;  // within 1 % of the tables
}

/// What a step's time is linear in.
double basis(const StepConstant& constant, double value) { return constant.divides ? 1 / value : value; }

/// Times as linear functions of the constants' bases, around a point.
struct LinearPiece {
  std::vector<double> at;                   ///< bases, by constant
  std::vector<double> times;                ///< there, by step
  std::vector<std::vector<double>> slopes;  ///< by step and constant

  double time(std::size_t step, const std::vector<StepConstant>& constants, const std::vector<double>& values) const {
    double t = times[step];
    for (std::size_t c = 0; c < values.size(); ++c) t += slopes[step][c] * (basis(constants[c], values[c]) - at[c]);
    return std::max(t, 1e-3 * times[step]);  // the piece does not reach as far as nothing
  }
};

class Fit {
 public:
  Fit(const std::vector<StepConstant>& constants, const std::vector<double>& measured, const SimulateSteps& simulate)
      : constants_(constants), measured_(measured), simulate_(simulate) {
    for (const StepConstant& c : constants) {
      parameters_.push_back({c.key, c.unit, c.expected, c.spread});
      values_.push_back(c.expected);
    }
  }

  StepFit run() {
    piece_ = linearise(values_);
    settle();
    // Where all steps scatter more than that, they are told from wild ones by their own scatter.
    const double scatter = std::min(1.5 * typical_error(), kMostScatter);
    if (scatter > scale_) {
      scale_ = scatter;
      settle();
    }
    return finish();
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static std::size_t none() { return kNone; }

  void settle() {
    double loss = loss_of(piece_.times, values_);
    while (out_.rounds < kMostRounds) {
      ++out_.rounds;
      std::vector<double> next = solve(none());
      LinearPiece there;
      double next_loss = 0;
      // Beyond the piece the steps may be slower than it says: then go half as far.
      for (int halvings = 0;; ++halvings) {
        if (change(next) < kSettled || halvings == 6) return;
        there = linearise(next);
        next_loss = loss_of(there.times, next);
        if (next_loss <= loss) break;
        for (std::size_t c = 0; c < next.size(); ++c) next[c] = std::sqrt(next[c] * values_[c]);
      }
      values_ = std::move(next);
      piece_ = std::move(there);
      loss = next_loss;
    }
  }

  int freedom() const { return static_cast<int>(measured_.size()) - static_cast<int>(constants_.size()); }

  /// 1.4826 times the median of |ln (simulated / measured)|, as if errors were normal, for the constants taken from it.
  double typical_error() const {
    std::vector<double> errors;
    for (std::size_t s = 0; s < measured_.size(); ++s)
      errors.push_back(std::abs(std::log(piece_.times[s] / measured_[s])));
    std::ranges::sort(errors);
    const auto steps = static_cast<double>(errors.size());
    return freedom() < 1 ? 0 : 1.4826 * errors[errors.size() / 2] * std::sqrt(steps / freedom());
  }

  std::vector<double> times_of(const std::vector<StepTrial>& trials) {
    out_.simulations += trials.size();
    return simulate_(trials);
  }

  /// A value near this one that a study may have.
  double moved(std::size_t c, double value) const {
    return value * (1 + kMove) <= constants_[c].most ? value * (1 + kMove) : value / (1 + kMove);
  }

  LinearPiece linearise(const std::vector<double>& values) {
    const std::size_t n = constants_.size();
    std::vector<StepTrial> trials;
    for (std::size_t s = 0; s < measured_.size(); ++s) {
      trials.push_back({s, values});
      for (std::size_t c = 0; c < n; ++c) {
        trials.push_back({s, values});
        trials.back().values[c] = moved(c, values[c]);
      }
    }
    const std::vector<double> times = times_of(trials);
    LinearPiece piece;
    for (std::size_t c = 0; c < n; ++c) piece.at.push_back(basis(constants_[c], values[c]));
    for (std::size_t s = 0; s < measured_.size(); ++s) {
      const std::size_t first = s * (n + 1);
      piece.times.push_back(times[first]);
      auto& slopes = piece.slopes.emplace_back();
      for (std::size_t c = 0; c < n; ++c)
        slopes.push_back((times[first + 1 + c] - times[first]) /
                         (basis(constants_[c], moved(c, values[c])) - piece.at[c]));
    }
    return piece;
  }

  std::vector<double> solve(std::size_t left_out) const {
    const LogErrors errors = [&](const std::vector<double>& values) {
      std::vector<double> out;
      for (std::size_t s = 0; s < measured_.size(); ++s)
        if (s != left_out) out.push_back(std::log(piece_.time(s, constants_, values) / measured_[s]));
      return out;
    };
    std::vector<double> values = fit_robustly(parameters_, errors, scale_).values();
    for (std::size_t c = 0; c < values.size(); ++c) values[c] = std::min(values[c], constants_[c].most);
    return values;
  }

  /// What fit_robustly() minimises, of simulated times.
  double loss_of(const std::vector<double>& times, const std::vector<double>& values) const {
    double sum = 0;
    for (std::size_t s = 0; s < times.size(); ++s) {
      const double e = std::log(times[s] / measured_[s]) / scale_;
      sum += 2 * (std::sqrt(1 + e * e) - 1);
    }
    for (std::size_t c = 0; c < values.size(); ++c) {
      const double z = std::log(values[c] / constants_[c].expected) / constants_[c].spread;
      sum += z * z;
    }
    return sum;
  }

  double change(const std::vector<double>& next) const {
    double most = 0;
    for (std::size_t c = 0; c < next.size(); ++c) most = std::max(most, std::abs(std::log(next[c] / values_[c])));
    return most;
  }

  StepFit finish() {
    out_.predicted = piece_.times;
    find_intervals();
    if (measured_.size() < 2) return std::move(out_);
    std::vector<StepTrial> trials;
    for (std::size_t s = 0; s < measured_.size(); ++s) trials.push_back({s, solve(s)});
    out_.left_out = times_of(trials);
    return std::move(out_);
  }

  /// Covariance of z = ln(value / expected) / spread: prior knowledge plus what the steps say, outliers weighing less.
  void find_intervals() {
    const std::size_t n = constants_.size();
    const auto steps = measured_.size();
    // Huber's estimate of the variance: errors as the loss sees them, over how steeply it sees them.
    double squares = 0, steepness = 0;
    for (std::size_t s = 0; s < steps; ++s) {
      const double error = std::log(piece_.times[s] / measured_[s]);
      const double weight = 1 / std::sqrt(1 + error * error / (scale_ * scale_));
      squares += weight * weight * error * error;
      steepness += weight * weight * weight / static_cast<double>(steps);
    }
    // Without degrees of freedom nothing tells how large errors are.
    const double error =
        freedom() > 0 ? std::max(std::sqrt(squares / freedom()) / steepness, kLeastError) : kUnknownError;
    SquareMatrix precision(n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) {
        double sum = a == b ? 1 : 0;
        for (std::size_t s = 0; s < steps; ++s) sum += slope(s, a) * slope(s, b) / (error * error);
        precision(a, b) = sum;
      }
    const SquareMatrix covariance = Cholesky(precision).inverse();  // positive definite: the prior is
    const double t = student_t(freedom());
    for (std::size_t a = 0; a < n; ++a) {
      const double deviation = std::sqrt(covariance(a, a));
      const double half = std::min(t * deviation, 1.96) * constants_[a].spread;
      out_.constants.push_back({constants_[a].key, constants_[a].unit, values_[a], values_[a] * std::exp(-half),
                                values_[a] * std::exp(half)});
      if (deviation > kUntold)
        out_.warnings.push_back(
            fmt::format("these steps say next to nothing about {}; leave it out of --fit, or measure steps in which it "
                        "counts",
                        constants_[a].key));
      for (std::size_t b = 0; b < a; ++b)
        if (const double r = covariance(a, b) / (deviation * std::sqrt(covariance(b, b)));
            std::abs(r) > kIndistinguishable)
          out_.warnings.push_back(fmt::format(
              "these steps can hardly tell {} from {} (correlation {:.2f}); vary the batch size, the number "
              "of workers or the model, or leave one out of --fit",
              constants_[b].key, constants_[a].key, r));
    }
    if (freedom() < 1)
      out_.warnings.push_back(fmt::format("{} from {}: nothing is left to tell how well they fit; measure more steps",
                                          counted(n, "constant"), counted(steps, "step")));
  }

  /// d ln time / d z of a step.
  double slope(std::size_t step, std::size_t c) const {
    const double by_value =
        constants_[c].divides ? -piece_.slopes[step][c] * piece_.at[c] : piece_.slopes[step][c] * piece_.at[c];
    return by_value / piece_.times[step] * constants_[c].spread;
  }

  const std::vector<StepConstant>& constants_;
  const std::vector<double>& measured_;
  const SimulateSteps& simulate_;
  std::vector<FitParameter> parameters_;
  double scale_ = kErrorScale;
  std::vector<double> values_;
  LinearPiece piece_;
  StepFit out_;
};

}  // namespace

StepFit fit_steps(const std::vector<StepConstant>& constants, const std::vector<double>& measured,
                  const SimulateSteps& simulate) {
  return Fit(constants, measured, simulate).run();
}

}  // namespace epocast
