#pragma once
// Targets from Qararyah 2020, "A computational-graph partitioning method for training memory-constrained DNNs"
// (ParDNN).

#include "experiments/reproduce/target.hpp"

namespace epocast::pardnn2020 {

/// Sizes of the computational graphs of Table 5.1.
Target node_counts();

}  // namespace epocast::pardnn2020
