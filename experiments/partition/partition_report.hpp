#pragma once
// A partition's figures as a table for people, CSV or JSON.

#include <iosfwd>

#include "experiments/partition/partition_job.hpp"

namespace epocast {

struct PartFigures {
  int part = 0;
  long vertices = 0;
  double load = 0;
};

struct PartitionFigures {
  std::vector<PartFigures> parts;
  LoadBalance balance;
  double average = 0;  ///< load over all parts, empty ones included
  double connectivity = 0, cut_net = 0;
  std::optional<double> gather_broadcast;  ///< with a network
  std::optional<Bytes> messages;           ///< of a step, with a network

  /// The largest load; 0 where nothing weighs anything.
  double max_over_average() const { return average > 0 ? balance.max / average : 0; }
  int empty_parts() const { return static_cast<int>(parts.size()) - balance.used_parts; }
};

PartitionFigures partition_figures(const PartitionOutcome& outcome);

/// Loads of all parts and, below, volumes.
void write_partition_table(std::ostream& out, const PartitionOutcome& outcome);
/// One line per part: part,vertices,load,load_over_average.
void write_partition_csv(std::ostream& out, const PartitionOutcome& outcome);
/// One object with the figures, the parts, and the part of each vertex.
void write_partition_json(std::ostream& out, const PartitionOutcome& outcome);

}  // namespace epocast
