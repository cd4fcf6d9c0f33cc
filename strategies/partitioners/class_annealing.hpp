#pragma once
// Partitions a hypergraph by simulated annealing on counts of equal vertices.
//
// Scope: any hypergraph; good where many vertices are alike, as filters of a layer are, because one step then moves any
// number of them. Memory is (classes + families) x parts numbers: not for millions of vertices that are all different.
// Limits: a heuristic. Nothing says how far from the best it is.
// Validation: tests/property/partition_property_test.cpp (against all partitions of small hypergraphs).

#include "strategies/partitioners/class_counts.hpp"
#include "strategies/partitioners/partition_options.hpp"

namespace epocast {

/// The best partition that `starts` searches find. Throws PartitionError for what check_partition_options refuses, and
/// if no partition within the limit is found.
Partition partition_by_annealing(const Hypergraph& graph, const PartitionOptions& options);

/// The same for known classes and any objective on counts; `gather` as in ClassCounts.
Partition partition_by_annealing(const Hypergraph& graph, const VertexClasses& classes, CountObjective objective,
                                 const std::vector<double>& gather, const PartitionOptions& options);

}  // namespace epocast
