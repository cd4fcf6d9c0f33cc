#pragma once
// Random variation of durations.

#include <cstdint>
#include <memory>
#include <vector>

namespace epocast {

/// How the factors are distributed; all have mean 1.
enum class NoiseKind {
  log_normal,
  gamma,  ///< with cv 1 the exponential distribution
  trace,  ///< measured factors, in their order
};

/// What has a factor of its own.
enum class NoiseScope {
  task,  ///< every single computation
  step,  ///< a device's whole step: its computations are slow together
};

/// Measured factors.
struct NoiseTrace {
  std::vector<double> factors;  ///< of mean 1
  double cv = 0;                ///< their coefficient of variation

  /// Scales the values to a mean of 1. REQUIRES: at least one; all positive.
  static std::shared_ptr<const NoiseTrace> from(std::vector<double> values);
};

/// Each computation (and message, if asked for) takes a random factor as long as it would.
struct NoiseModel {
  double compute_cv = 0;  ///< coefficient of variation of a computation's time
  std::uint64_t seed = 1;
  double transfer_cv = 0;  ///< of a message's size as far as time is concerned: it takes as long as a larger one would
  NoiseKind kind = NoiseKind::log_normal;
  NoiseScope scope = NoiseScope::task;
  /// If kind is trace. A device begins somewhere and takes one after the other, round and round, one for each step; so
  /// the scope is a step. Deviations from 1 are scaled to the coefficient of variation that is asked for.
  std::shared_ptr<const NoiseTrace> trace = nullptr;

  bool any() const { return compute_cv > 0 || transfer_cv > 0; }
  /// Whether a step has one factor, whatever the task: then `rank` is the number of a device, `iteration` of a step.
  bool by_step() const { return scope == NoiseScope::step || kind == NoiseKind::trace; }

  /// The factor for one computation: a pure function of its arguments, so that event order does not matter.
  double factor(std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const {
    return draw(compute_cv, task, rank, iteration);
  }
  /// What so many steps of a device in a row take longer. REQUIRES: by_step().
  double mean_factor(std::uint32_t device, std::int64_t first, std::int64_t steps) const;
  /// The factor for one message.
  double transfer_factor(std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const {
    return draw(transfer_cv, task, rank, iteration);
  }

 private:
  double draw(double cv, std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const;
};

}  // namespace epocast
