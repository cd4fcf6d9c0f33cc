#pragma once
// The random factors of one noise model, for those who draw millions.

#include <cstdint>

#include "sim/noise.hpp"

namespace epocast {

/// What NoiseModel's draws of one coefficient of variation have in common, computed once. Not for measured factors.
class NoiseDraws {
 public:
  /// REQUIRES: model.kind is not trace; cv > 0.
  NoiseDraws(const NoiseModel& model, double cv);

  /// A pure function of its arguments, so that event order does not matter.
  double draw(std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const;

 private:
  NoiseKind kind_;
  NoiseScope scope_;
  double cv_;
  std::uint64_t seed_bits_;
  double spread_ = 0, shift_ = 0;  ///< of a log-normal factor: exp(spread z - shift)
};

}  // namespace epocast
