#pragma once
// How long stages of consecutive layers take, by sums over the layers before each boundary, so that any range costs a
// few operations.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "strategies/partitioners/contiguous_split.hpp"

namespace epocast {

/// Layers that take time, before each boundary.
std::vector<std::size_t> count_timed(const WorkloadTrace& trace);

/// Times of stages per batch: computation, and the all-reduce of gradients over replicas (PipeDream: T(i -> j, m)).
class StageTimes {
 public:
  StageTimes(const WorkloadTrace& trace, const SplitOptions& options);

  /// Whether a batch divides among so many replicas.
  bool allows(int replicas) const { return !by_replicas_ || !compute_[static_cast<std::size_t>(replicas) - 1].empty(); }

  /// Of layers [first, last), in s. REQUIRES allows(replicas).
  double operator()(std::size_t first, std::size_t last, int replicas) const {
    const double reduce = reduction_ * (replicas - 1) * (parameters_[last] - parameters_[first]) / replicas;
    const std::vector<double>& sums = compute_[by_replicas_ ? static_cast<std::size_t>(replicas) - 1 : 0];
    const double compute = (sums[last] - sums[first]) / (by_replicas_ ? 1 : replicas);
    return overlap_ ? std::max(compute, reduce) : compute + reduce;
  }

  /// A lower bound of the time that the layers before `last` keep devices busy, all devices' added.
  double work(std::size_t last) const { return work_[last]; }

 private:
  double reduction_;  ///< s per byte of parameters and replica but one
  bool by_replicas_, overlap_;
  std::vector<double> parameters_{0}, work_{0};
  std::vector<std::vector<double>> compute_;  ///< by replicas, less 1, if that makes a difference
};

}  // namespace epocast
