#pragma once
// The critical cycle of a weighted graph: most weight per lag.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace epocast {

struct RatioArc {
  std::uint32_t from = 0, to = 0;
  double weight = 0;  ///< not negative
  double lag = 0;     ///< not negative
};

struct CriticalCycle {
  double ratio = 0;               ///< weight per lag
  std::vector<std::size_t> arcs;  ///< their numbers, in order
};

/// The cycle with the largest sum of weights / sum of lags, by Howard's policy iteration in its multichain form
/// (Cochet-Terrasson, Cohen, Gaubert, McGettrick, Quadrat 1998, "Numerical computation of spectral elements in max-plus
/// algebra"). Every vertex 0 .. vertices - 1 must have an arc that leaves it, and every cycle a lag above 0.
CriticalCycle critical_cycle(std::size_t vertices, const std::vector<RatioArc>& arcs);

}  // namespace epocast
