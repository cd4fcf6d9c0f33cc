#pragma once
// A partition's figures as a table for people, CSV or JSON.

#include <iosfwd>

#include "experiments/partition/partition_job.hpp"

namespace epocast {

/// Loads of all parts and, below, volumes.
void write_partition_table(std::ostream& out, const PartitionOutcome& outcome);
/// One line per part: part,vertices,load,load_over_average.
void write_partition_csv(std::ostream& out, const PartitionOutcome& outcome);
/// One object with the figures, the parts, and the part of each vertex.
void write_partition_json(std::ostream& out, const PartitionOutcome& outcome);

}  // namespace epocast
