#pragma once
// Hermans 2017, Maastricht University: a draft thesis on parallel gradient descent. It holds no measurements.

#include "experiments/reproduce/target.hpp"

namespace epocast::hermans2017 {

/// Algorithms 1 and 2 followed step by step for two workers, as in figure 1.4, against the simulation; equation 4.1 and
/// the shard size of section 1.3 as printed and corrected.
Target algorithms();
/// The experiments that the draft plans, run on drawn digits: ours, as it has no numbers.
Target experiments();

}  // namespace epocast::hermans2017
