#pragma once
// Which rings through a group of ranks carry the most together: what NCCL searches for in a node.

#include <vector>

namespace epocast {

/// A ring through all ranks, and its part of what all rings carry.
struct Ring {
  std::vector<int> order;  ///< ranks; each sends to the next, the last to the first
  double share = 1;        ///< of the vector
};

/// What the search sees of a network: capacities, and which of them the way from one rank to another takes.
struct PairNetwork {
  int ranks = 0;
  std::vector<double> capacity = {};                ///< B/s, by resource
  std::vector<std::vector<int>> resources_of = {};  ///< from rank i to rank j: entry i * ranks + j
  std::vector<bool> direct = {};                    ///< nothing but one link lies between them; the same order

  std::size_t index(int from, int to) const { return static_cast<std::size_t>(from * ranks + to); }
};

/// Larger groups are not searched: the work grows with 2^ranks; 8 ranks take up to 1 ms, 10 up to 20 ms.
constexpr int kMaxRingSearch = 10;

/// The rings whose rates add up to the most, each together with its reverse, the fastest first; over direct links only
/// where these join all ranks in a ring. Shares are in proportion to the rates, and add up to 1. The optimum of all
/// sets of rings that are used in both directions: a packing program, whose columns are found by their price as
/// shortest Hamiltonian cycles (Held and Karp, "A dynamic programming approach to sequencing problems", 1962). Starts
/// from the widest ring, then the widest through what that leaves, and so on, so that rings are few where that is
/// enough. REQUIRES: 3 <= ranks <= kMaxRingSearch.
std::vector<Ring> find_rings(const PairNetwork& network);

}  // namespace epocast
