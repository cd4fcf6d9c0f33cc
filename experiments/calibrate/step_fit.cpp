#include "experiments/calibrate/step_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "costmodels/dense.hpp"
#include "sim/quantile.hpp"
#include "sim/words.hpp"

namespace epocast {
namespace {

constexpr double kErrorScale = 0.01;  // of ln time: errors below count by their squares, larger ones by their size
constexpr double kTuning = 1.5;       // the same in standard deviations of usual errors (Huber: 1.345 to 1.5)
constexpr double kMostScatter = 0.2;
constexpr double kUnknownError = 0.05;  // of ln time, where there are no more steps than constants
constexpr double kLeastError = 1e-3;    // no step is known better than this
constexpr double kMove = 0.01;          // relative change of a constant for its slope
constexpr double kSettled = 1e-4;       // relative change of the times
constexpr int kMostRounds = 12;
constexpr double kIndistinguishable = 0.95;  // correlation
// That links and software cost nothing contradicts what is known of them: it must predict so many times better, in
// squares of errors.
constexpr double kDoubtOfNothing = 10;
constexpr double kUntold = 0.7;  // of the spread before seeing the data: what is left when they say nothing

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

/// The fit of all constants but those that are held.
class Fit {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  using LeftOut = std::array<std::size_t, 2>;  ///< steps, or kNone

  Fit(const std::vector<StepConstant>& constants, const std::vector<double>& measured, const SimulateSteps& simulate)
      : constants_(constants), measured_(measured), simulate_(simulate) {
    for (const StepConstant& c : constants) {
      // fit_robustly() weighs errors as if the scale were their standard deviation.
      parameters_.push_back({c.key, c.unit, c.expected, kTuning * c.spread});
      values_.push_back(c.expected);
    }
  }

  /// `from`: values to begin with, if others than the expected ones.
  void run(const std::vector<double>& from) {
    if (!from.empty()) values_ = from;
    piece_ = linearise(values_, times_at(values_));
    settle();
    // Where all steps scatter more than that, they are told from wild ones by their own scatter.
    const double scatter = std::min(kTuning * typical_error(), kMostScatter);
    if (scatter > scale_) {
      scale_ = scatter;
      settle();
    }
  }

  /// Values that the steps but these say.
  std::vector<double> solve(const LeftOut& left_out) const {
    const LogErrors errors = [&](const std::vector<double>& values) { return errors_of(values, left_out); };
    std::vector<double> values = fit_robustly(parameters_, errors, scale_, values_).values();
    for (std::size_t c = 0; c < values.size(); ++c) values[c] = std::min(values[c], constants_[c].most);
    return values;
  }

  /// Sum of squares of ln (predicted / measured), on the piece, of steps predicted from the others; one step has no
  /// part in any of it.
  double cross_validation(std::size_t left_out) const {
    double sum = 0;
    for (std::size_t s = 0; s < measured_.size(); ++s) {
      if (s == left_out) continue;
      const double error = std::log(piece_.time(s, constants_, solve({left_out, s})) / measured_[s]);
      sum += error * error;
    }
    return sum;
  }

  /// What these values leave of the steps at `places` but one. `scale`: which constant is the factor on computing.
  Discrepancy discrepancy(const std::vector<StepPlace>& places, const std::vector<double>& values, std::size_t scale,
                          std::size_t left_out) const {
    std::vector<StepPlace> at;
    std::vector<StepRemainder> remainders;
    for (std::size_t s = 0; s < measured_.size(); ++s) {
      if (s == left_out) continue;
      const double time = piece_.time(s, constants_, values), error = std::log(measured_[s] / time);
      at.push_back(places[s]);
      remainders.push_back({.error = error,
                            .slope = piece_.slopes[s][scale] * values[scale] / time,
                            .doubt = std::sqrt(1 + error * error / (scale_ * scale_))});
    }
    return find_discrepancy(at, remainders);
  }

  const std::vector<double>& values() const { return values_; }
  int rounds() const { return out_.rounds; }
  std::size_t simulations() const { return out_.simulations; }

  /// But for `left_out`.
  StepFit result() {
    out_.predicted = piece_.times;
    find_intervals();
    return std::move(out_);
  }

 private:
  /// ln (predicted / measured) on the piece, of the steps but these.
  std::vector<double> errors_of(const std::vector<double>& values, const LeftOut& left_out) const {
    std::vector<double> out;
    for (std::size_t s = 0; s < measured_.size(); ++s)
      if (std::ranges::find(left_out, s) == left_out.end())
        out.push_back(std::log(piece_.time(s, constants_, values) / measured_[s]));
    return out;
  }

  void settle() {
    double loss = loss_of(piece_.times, values_);
    while (out_.rounds < kMostRounds) {
      ++out_.rounds;
      std::vector<double> next = solve({kNone, kNone});
      std::vector<double> there;
      double next_loss = 0;
      // Beyond the piece the steps may be slower than it says: then go half as far.
      for (int halvings = 0;; ++halvings) {
        if (change(next) < kSettled || halvings == 6) return;
        there = times_at(next);
        next_loss = loss_of(there, next);
        if (next_loss <= loss) break;
        for (std::size_t c = 0; c < next.size(); ++c) next[c] = std::sqrt(next[c] * values_[c]);
      }
      values_ = std::move(next);
      piece_ = linearise(values_, std::move(there));
      loss = next_loss;
    }
  }

  int freedom() const { return static_cast<int>(measured_.size()) - static_cast<int>(constants_.size()); }

  /// 1.4826 times the median of |ln (simulated / measured)|, as if errors were normal, for the constants taken from it.
  double typical_error() const {
    std::vector<double> errors;
    for (std::size_t s = 0; s < measured_.size(); ++s)
      errors.push_back(std::abs(std::log(piece_.times[s] / measured_[s])));
    const auto steps = static_cast<double>(errors.size());
    return freedom() < 1 ? 0 : 1.4826 * median(std::move(errors)) * std::sqrt(steps / freedom());
  }

  std::vector<double> times_of(const std::vector<StepTrial>& trials) {
    out_.simulations += trials.size();
    return simulate_(trials);
  }

  /// A value near this one that a study may have.
  double moved(std::size_t c, double value) const {
    return value * (1 + kMove) <= constants_[c].most ? value * (1 + kMove) : value / (1 + kMove);
  }

  std::vector<double> times_at(const std::vector<double>& values) {
    std::vector<StepTrial> trials;
    for (std::size_t s = 0; s < measured_.size(); ++s) trials.push_back({s, values});
    return times_of(trials);
  }

  /// The piece around `values`, where the steps take `times`.
  LinearPiece linearise(const std::vector<double>& values, std::vector<double> times) {
    const std::size_t n = constants_.size();
    std::vector<StepTrial> trials;
    for (std::size_t s = 0; s < measured_.size(); ++s)
      for (std::size_t c = 0; c < n; ++c) {
        trials.push_back({s, values});
        trials.back().values[c] = moved(c, values[c]);
      }
    const std::vector<double> moved_times = times_of(trials);
    LinearPiece piece;
    for (std::size_t c = 0; c < n; ++c) piece.at.push_back(basis(constants_[c], values[c]));
    for (std::size_t s = 0; s < measured_.size(); ++s) {
      auto& slopes = piece.slopes.emplace_back();
      for (std::size_t c = 0; c < n; ++c)
        slopes.push_back((moved_times[s * n + c] - times[s]) /
                         (basis(constants_[c], moved(c, values[c])) - piece.at[c]));
    }
    piece.times = std::move(times);
    return piece;
  }

  /// What fit_robustly() minimises, of simulated times.
  double loss_of(const std::vector<double>& times, const std::vector<double>& values) const {
    double sum = 0;
    for (std::size_t s = 0; s < times.size(); ++s) {
      const double e = std::log(times[s] / measured_[s]) / scale_;
      sum += 2 * (std::sqrt(1 + e * e) - 1);
    }
    for (std::size_t c = 0; c < values.size(); ++c) {
      const double z = std::log(values[c] / parameters_[c].expected) / parameters_[c].spread;
      sum += z * z;
    }
    return sum;
  }

  /// Of the times that the piece says, relative.
  double change(const std::vector<double>& next) const {
    double most = 0;
    for (std::size_t s = 0; s < measured_.size(); ++s)
      most = std::max(most, std::abs(std::log(piece_.time(s, constants_, next) / piece_.times[s])));
    return most;
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
    const double t = boost::math::quantile(boost::math::students_t(std::max(freedom(), 1)), 0.975);
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

/// By constant, its value if it is held.
using Held = std::vector<std::optional<double>>;

/// A fit with constants held at usual values, or none.
class Candidate {
 public:
  /// `held`: by constant, its value if it is held. `from`: values of all constants to begin with, if there are any.
  Candidate(const std::vector<StepConstant>& constants, Held held, const std::vector<double>& from,
            const std::vector<double>& measured, const SimulateSteps& simulate)
      : held_(std::move(held)),
        free_(free_of(constants, held_)),
        simulate_([this, &simulate](std::vector<StepTrial> trials) {
          for (StepTrial& trial : trials) trial.values = all(trial.values);
          return simulate(trials);
        }),
        fit_(free_, measured, simulate_) {
    std::vector<double> begin;
    for (std::size_t c = 0; c < from.size(); ++c)
      if (!held_[c]) begin.push_back(from[c]);
    fit_.run(begin);
  }
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  Fit& fit() { return fit_; }
  const Held& held() const { return held_; }

  /// Which of the free constants is the factor on computing, if one is.
  std::optional<std::size_t> computing() const {
    const auto found = std::ranges::find(free_, "compute.scale", &StepConstant::key);
    if (found == free_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - free_.begin());
  }

  /// Values of all constants, from those of the free ones.
  std::vector<double> all(const std::vector<double>& values) const {
    std::vector<double> out;
    auto next = values.begin();
    for (const std::optional<double>& value : held_) out.push_back(value ? *value : *next++);
    return out;
  }

 private:
  static std::vector<StepConstant> free_of(const std::vector<StepConstant>& constants, const Held& held) {
    std::vector<StepConstant> out;
    for (std::size_t c = 0; c < constants.size(); ++c)
      if (!held[c]) out.push_back(constants[c]);
    return out;
  }

  Held held_;
  std::vector<StepConstant> free_;
  SimulateSteps simulate_;
  Fit fit_;
};

/// All ways to hold constants at usual values, the one that holds none first.
std::vector<Held> ways_to_hold(const std::vector<StepConstant>& constants) {
  std::vector<Held> out{{}};
  for (const StepConstant& constant : constants) {
    std::vector<Held> longer;
    for (const auto& way : out) {
      longer.push_back(way);
      longer.back().push_back(std::nullopt);
    }
    for (const double value : constant.usual)
      for (const auto& way : out) {
        longer.push_back(way);
        longer.back().push_back(value);
      }
    out = std::move(longer);
  }
  return out;
}

/// The way in which several workers lose nothing.
Held costless(const std::vector<StepConstant>& constants) {
  Held out;
  for (const StepConstant& constant : constants) out.push_back(constant.costless);
  return out;
}

}  // namespace

StepFit fit_steps(const std::vector<StepConstant>& constants, const std::vector<double>& measured,
                  const SimulateSteps& simulate, const std::vector<StepPlace>& places) {
  std::vector<std::unique_ptr<Candidate>> candidates;
  std::vector<double> from;  // where all are free
  std::vector<Held> ways = ways_to_hold(constants);
  const Held nothing_lost = costless(constants);
  const bool is_usual = std::ranges::find(ways, nothing_lost) != ways.end();
  if (!is_usual) ways.push_back(nothing_lost);
  for (const Held& held : ways) {
    if (std::ranges::none_of(held, [](const auto& value) { return !value; })) continue;
    candidates.push_back(std::make_unique<Candidate>(constants, held, from, measured, simulate));
    if (from.empty()) from = candidates.front()->fit().values();
  }
  const auto is_doubted = [&](const Candidate& one) { return !is_usual && one.held() == nothing_lost; };
  const auto best = [&](std::size_t left_out) {
    struct Choice {
      Candidate* candidate = nullptr;
      std::vector<double> values;
      double error = 0;
    } out;
    for (const auto& candidate : candidates) {
      Fit& fit = candidate->fit();
      const double error = fit.cross_validation(left_out) * (is_doubted(*candidate) ? kDoubtOfNothing : 1);
      // Of equals the one that holds most, which is the last.
      if (out.candidate != nullptr && error > out.error) continue;
      out = {candidate.get(), left_out == Fit::kNone ? fit.values() : fit.solve({left_out, Fit::kNone}), error};
    }
    return out;
  };

  const auto discrepancy = [&](const auto& choice, std::size_t left_out) {
    const std::optional<std::size_t> scale = choice.candidate->computing();
    if (places.empty() || !scale) return Discrepancy();
    return choice.candidate->fit().discrepancy(places, choice.values, *scale, left_out);
  };

  const auto chosen = best(Fit::kNone);
  int rounds = 0;
  std::size_t simulations = 0;
  for (const auto& candidate : candidates) {
    rounds += candidate->fit().rounds();
    simulations += candidate->fit().simulations();
  }
  StepFit out = chosen.candidate->fit().result();
  out.rounds = rounds;
  out.simulations = simulations;
  if (chosen.candidate != candidates.front().get()) {
    const StepFit free = candidates.front()->fit().result();
    for (std::size_t c = 0; c < constants.size(); ++c)
      if (const std::optional<double>& value = chosen.candidate->held()[c]) {
        const FittedParameter& f = free.constants[c];
        out.constants.insert(out.constants.begin() + static_cast<std::ptrdiff_t>(c),
                             {f.name, f.unit, *value, std::min(f.low, *value), std::max(f.high, *value)});
        out.held.push_back(f.name);
      }
  }
  if (is_doubted(*chosen.candidate))
    out.warnings.push_back(
        "several workers lose nothing in these steps, so that links and software cost nothing in this fit; "
        "if gradients of micro-batches are added up before they are exchanged, say so (accumulation); if none are, as "
        "of "
        "processes that do not know of each other, these are no steps of this strategy");
  if (measured.size() < 2) return out;
  out.discrepancy = discrepancy(chosen, Fit::kNone);
  std::vector<StepTrial> trials;
  for (std::size_t s = 0; s < measured.size(); ++s) {
    auto choice = best(s);
    if (const auto scale = choice.candidate->computing(); scale && !places.empty())
      choice.values[*scale] *= discrepancy(choice, s).factor(places[s]);
    trials.push_back({s, choice.candidate->all(choice.values)});
  }
  out.simulations += trials.size();
  out.left_out = simulate(trials);
  return out;
}

}  // namespace epocast
