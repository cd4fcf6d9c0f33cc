#pragma once
// Which of two runs is faster: what a forecast is asked for most often.

#include <string>
#include <vector>

#include "experiments/reproduce/target.hpp"

namespace epocast {

/// Two predicted rows with the same TargetRow::rivals whose published numbers differ by more than was asked. Gaps are
/// how much more the better one has, in percent of the other; that of the forecast is negative where it takes the other
/// for the better one.
struct WinnerPair {
  std::string better, other;  ///< rows
  double published_gap = 0, simulated_gap = 0;

  bool is_right() const { return simulated_gap > 0; }
  /// As KnownMiss::what has it.
  std::string name() const { return better + " before " + other; }
};

/// All pairs whose published numbers differ by more than `least_gap` percent, those that the forecast has wrong first,
/// of these the largest published gap first. `less_is_better`: of times.
std::vector<WinnerPair> winner_pairs(const std::vector<TargetRow>& rows, double least_gap, bool less_is_better);

}  // namespace epocast
