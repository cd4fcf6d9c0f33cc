#pragma once
// METIS (Karypis and Kumar, SIAM J. Sci. Comput. 20, 1998): what partitioning a graph instead of the hypergraph costs.
// METIS is optional; it was there when epocast was built, or not.

#include "strategies/partitioners/partition_options.hpp"

namespace epocast {

/// Whether this epocast was built with METIS.
bool has_metis();

/// The best of options.starts times k-way partitioning and recursive bisection, each with two tolerances, on stars and,
/// unless the hypergraph has too many pins for them, cliques in the place of nets (graph_expansion.hpp). METIS
/// minimises the edge cut; best is who has the least of options.objective. METIS may exceed the imbalance; see
/// best_partition.hpp. It runs in child processes: it draws from rand(), catches signals, and writes to stdout. Throws
/// PartitionError as check_partition_options does, ConfigError if there is no METIS, with the remedy, if it fails, or
/// if the hypergraph is too large for its 32-bit numbers.
Partition partition_with_metis(const Hypergraph& graph, const PartitionOptions& options);

}  // namespace epocast
