#pragma once
// Several partitioners and numbers of parts side by side.

#include <iosfwd>
#include <string>
#include <vector>

#include "experiments/partition/partition_report.hpp"

namespace epocast {

struct ComparedPartition {
  std::string algorithm;
  int parts = 0;
  std::optional<PartitionFigures> figures;  ///< absent if there is none
  std::string problem;                      ///< why
};

struct PartitionComparison {
  std::vector<std::string> algorithms;
  std::vector<int> parts;
  std::vector<ComparedPartition> cells;  ///< all algorithms for the first number of parts, then for the next
};

/// make_partition for each algorithm and number of parts. Throws ConfigError for names that are not in
/// partition_algorithms(), and the first error if every cell fails.
PartitionComparison compare_partitions(PartitionRequest request, const std::vector<std::string>& algorithms,
                                       const std::vector<int>& parts, const Registries& registries);

/// A row per number of parts, connectivity and largest load over average per algorithm; below, what failed
/// or left parts empty.
void write_comparison_table(std::ostream& out, const PartitionComparison& comparison);
/// One line per cell: algorithm,parts,connectivity,cut_net,gather_broadcast,message_bytes,load_over_average,used_parts,
/// problem. Numbers of a cell that failed are empty.
void write_comparison_csv(std::ostream& out, const PartitionComparison& comparison);
/// An array of objects with what the CSV has.
void write_comparison_json(std::ostream& out, const PartitionComparison& comparison);

}  // namespace epocast
