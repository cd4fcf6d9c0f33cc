#pragma once
// How many epochs a target takes, where no training is run.

#include <cstdint>
#include <optional>

#include "sim/config.hpp"

namespace epocast {

/// Given for one batch, with rules for others: what it holds belongs to a problem, and has to be measured or taken from
/// a paper.
///
/// Samples to a target grow with the batch B as 1 + B / B_c (McCandlish et al. 2018, "An empirical model of large-batch
/// training", 2.3: S = S_min (1 + B_c / B) steps of B samples), B_c the critical batch. Stale gradients make steps
/// shorter: epochs grow by the penalty for each version that a gradient is behind on average. Limits: both rules hold
/// while the learning rate is the best for each batch; a loss of final accuracy is not known to them.
struct Convergence {
  double epochs = 1;       ///< with `batch`, in step
  std::int64_t batch = 1;  ///< samples of all workers
  std::optional<double> critical_batch = {};
  double staleness_penalty = 0;

  double epochs_with(std::int64_t global_batch, double mean_staleness) const;
};

/// `given: {epochs: 90, batch: 256, critical_batch: 8000, staleness_penalty: 0.1}`. Throws ConfigError.
Convergence read_convergence(const ConfigNode& node);

}  // namespace epocast
