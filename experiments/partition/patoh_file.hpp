#pragma once
// Hypergraphs in PaToH's text format, and partitions as one part number per vertex: what other partitioners read and
// write. PaToH manual, version 3, section 6:
//
//     % comment
//     BASE VERTICES NETS PINS [SCHEME]     # BASE 0 or 1: number of the first vertex. SCHEME 1: vertices have weights,
//     [COST] PIN PIN ...                   # 2: nets have costs, 3: both. One line per net.
//     WEIGHT WEIGHT ...                    # of all vertices, on any number of lines

#include <filesystem>
#include <iosfwd>
#include <string>

#include "strategies/partitioners/hypergraph.hpp"

namespace epocast {

/// Throws ConfigError with file and line for anything that is not as above, numbers that are negative or not finite,
/// and a vertex that is twice in a net.
Hypergraph read_patoh(std::istream& in, const std::string& name);
Hypergraph load_patoh(const std::filesystem::path& file);

/// Numbers must be whole for PaToH. Costs and weights that are not, or that add up to more than 2^30, are scaled and
/// rounded to whole numbers; a comment says by how much.
void write_patoh(std::ostream& out, const Hypergraph& graph);

/// Reads `vertices` part numbers, separated by white space; as many parts as `parts`, or, if that is 0, as the largest
/// number says. Throws ConfigError with file and line for too few or too many, and for parts that do not exist.
Partition read_partition(std::istream& in, const std::string& name, int vertices, int parts);
Partition load_partition(const std::filesystem::path& file, int vertices, int parts);

/// One part number a line.
void write_partition(std::ostream& out, const Partition& partition);

}  // namespace epocast
