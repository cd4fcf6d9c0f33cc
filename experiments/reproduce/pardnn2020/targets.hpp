#pragma once
// Targets from Qararyah 2020, "A computational-graph partitioning method for training memory-constrained DNNs"
// (ParDNN).

#include "experiments/reproduce/target.hpp"

namespace epocast::pardnn2020 {

/// Sizes of the computational graphs of Table 5.1.
Target node_counts();
/// Parameters of Table 5.1's networks.
Target parameters();
/// How the time of each stage grows with the graph, Table 4.1.
Target complexity();
/// The largest batches of Table 6.1, and their increase over data parallelism.
Target largest_batches();
/// Numbers of the text about single graphs, and figures 4.2 and 4.3.
Target graph_facts();
/// Numbers of the text that compare placements.
Target placement_facts();

}  // namespace epocast::pardnn2020
