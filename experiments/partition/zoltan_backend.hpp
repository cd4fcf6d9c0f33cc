#pragma once
// Zoltan's parallel hypergraph partitioner (PHG; Devine et al., IPDPS 2006) as a second opinion. It is optional, and in
// a program of its own, epocast-zoltan beside this one, so that nothing else pays for loading Zoltan and MPI.

#include "strategies/partitioners/partition_options.hpp"

namespace epocast {

/// The best of options.starts runs, each with two tolerances. PHG may exceed the imbalance; see best_partition.hpp.
/// Minimises connectivity. Throws ConfigError if there is no epocast-zoltan, with the remedy, or if it fails.
Partition partition_with_zoltan(const Hypergraph& graph, const PartitionOptions& options);

}  // namespace epocast
