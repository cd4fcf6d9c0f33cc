#pragma once
// What all partitioners of hypergraphs are asked for.

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategies/partitioners/hypergraph.hpp"

namespace epocast {

struct PartitionOptions {
  int parts = 2;
  double imbalance = 0.1;  ///< each part weighs at most (1 + imbalance) x total / parts
  CutObjective objective = CutObjective::connectivity;
  /// Whether a vertex that is too heavy for any part gets one of its own; if not, it is an error. The other parts keep
  /// to the limit either way.
  bool heavy_alone = false;
  int starts = 4;          ///< independent searches; the best result counts
  std::uint64_t seed = 1;  ///< of the first search; equal seeds give equal partitions
  double effort = 1;       ///< scales the length of each search
  /// What a vertex is called in messages; "vertex 17" if absent.
  std::function<std::string(int)> name = {};
};

/// What was asked for cannot be had. what() says which vertex or limit is in the way.
class PartitionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Vertices heavier than the limit, heaviest first. Throws PartitionError for fewer than one part, more parts than
/// vertices, a negative or infinite imbalance, and, unless they may have a part of their own, for such vertices; also
/// if the others do not fit into the parts that are left.
std::vector<int> check_partition_options(const Hypergraph& graph, const PartitionOptions& options);

/// The same numbers on every machine (xoshiro256**, Blackman and Vigna 2018).
class PartitionRandom {
 public:
  explicit PartitionRandom(std::uint64_t seed);
  std::uint64_t next();
  int below(int n);  ///< 0 .. n - 1; REQUIRES n > 0
  double unit();     ///< [0, 1)

 private:
  std::uint64_t state_[4];
};

}  // namespace epocast
