#pragma once
// Times the kernels of a training step one by one and, to test them, the step itself.

#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "workloads/microbench/cache_state.hpp"
#include "workloads/microbench/executed_step.hpp"
#include "workloads/microbench/stopwatch.hpp"

namespace epocast {

/// Statistics of repeated measurements (see stopwatch.hpp), in seconds.
struct Sample {
  std::vector<double> times;

  double median() const;
  double fastest() const;
  /// Interquartile range over the median.
  double spread() const;
  /// Standard error of the median over the median, as for normal noise: 0.93 * interquartile range / sqrt(n).
  double uncertainty() const;
};

struct TimingRule {
  int least = 7;              ///< repetitions
  int most = 60;              ///< repetitions
  double uncertainty = 0.01;  ///< enough if the median's standard error is this share of it
  double enough_at = 1e18;    ///< [s] on the clock: from then on one repetition is enough
  double stop_at = 1e18;      ///< [s] on the clock: nothing begins that would end later
  std::function<double()> clock = &Stopwatch::now;
};

struct TimedStep {
  std::vector<int> distinct;    ///< by kernel of the step: which of `kernels` has its time
  std::vector<Sample> kernels;  ///< timed one by one
  std::vector<Sample> in_step;  ///< by kernel of the step: as part of whole steps; for diagnosis only
  Sample step;                  ///< whole steps
  double step_waited = 0;       ///< shares of steps in which other programs had the CPU, summed over steps
};

/// Called with the share of the work that is done, from 0 to 1.
using Progress = std::function<void(double)>;

/// Times every distinct kernel (Kernel::key and CacheState::history) until the rule is satisfied, in rounds over all
/// that are not there yet, so that a noisy second hits many kernels a little and none much. With `whole_steps`, each
/// round also executes the step, and all kernels are timed in all rounds until the step satisfies the rule. Throws
/// ConfigError if something has not been timed once when time is up.
TimedStep time_step(ExecutedStep& step, std::size_t cache, const TimingRule& rule, bool whole_steps,
                    const Progress& progress);

}  // namespace epocast
