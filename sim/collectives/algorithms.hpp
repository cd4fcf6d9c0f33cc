#pragma once
// Internal to sim/collectives: what an algorithm is, and the parts that algorithms share.
// To add one: a file with its rounds, a formula in closed_form.cpp, a line in the table of schedule.cpp.

#include <span>
#include <vector>

#include "sim/collective.hpp"

namespace epocast::collectives {

/// A checked request: ranks >= 2, bytes finite and >= 0, node_of empty or of length ranks.
struct Request {
  CollectiveOp op = CollectiveOp::all_reduce;
  int ranks = 2;
  double bytes = 0;
  std::span<const int> node_of = {};

  double block() const { return bytes / ranks; }  ///< one rank's share [B]
};

using Rounds = std::vector<Round>;
using Groups = std::vector<std::vector<int>>;  ///< disjoint lists of ranks

struct Algorithm {
  CollectiveAlgorithm id;
  const char* name;
  std::vector<CollectiveOp> ops;
  Rounds (*rounds)(const Request&);
  double (*time)(const Request&, const AlphaBetaGamma&);  ///< closed form [s]
  bool exact = true;       ///< the closed form is the time of the rounds on an idle star, for any number of ranks
  bool is_stream = false;  ///< its rounds, where they are no permutations; see CollectiveSchedule
};

/// All algorithms, in the order of the enumeration.
const std::vector<Algorithm>& algorithms();

// Schedules, one file each.
Rounds ring_rounds(const Request& request);
Rounds halving_doubling_rounds(const Request& request);
Rounds recursive_doubling_rounds(const Request& request);
Rounds binomial_tree_rounds(const Request& request);
Rounds double_binary_tree_rounds(const Request& request);
Rounds hierarchical_rounds(const Request& request);
Rounds multi_ring_rounds(const Request& request);
Rounds pairwise_rounds(const Request& request);
Rounds bruck_rounds(const Request& request);

// Closed forms, all in closed_form.cpp.
double ring_time(const Request& request, const AlphaBetaGamma& link);
double halving_doubling_time(const Request& request, const AlphaBetaGamma& link);
double recursive_doubling_time(const Request& request, const AlphaBetaGamma& link);
double binomial_tree_time(const Request& request, const AlphaBetaGamma& link);
double double_binary_tree_time(const Request& request, const AlphaBetaGamma& link);
double hierarchical_time(const Request& request, const AlphaBetaGamma& link);
double pairwise_time(const Request& request, const AlphaBetaGamma& link);
double bruck_time(const Request& request, const AlphaBetaGamma& link);

// Parts that several algorithms use.
int largest_power_of_two(int n);  ///< the largest power of two <= n; REQUIRES n >= 1
int ceil_log2(int n);             ///< REQUIRES n >= 1

Round shift_round(int operand, double bytes, double reduce_bytes, int repeat = 1, int per_node = 1);
Round exclusive_or_round(int mask, double bytes, double reduce_bytes);
void append(Rounds& rounds, Rounds more);

/// The same binomial broadcast from, or reduce to, the first rank of every group at once. REQUIRES groups of one size.
Rounds binomial_broadcast(const Groups& groups, double bytes);
Rounds binomial_reduce(const Groups& groups, double bytes);
/// Binomial scatter from, and gather to, rank 0; every rank owns one block.
Rounds binomial_scatter(int ranks, double block);
Rounds binomial_gather(int ranks, double block);

/// The ranks of each node, nodes by first appearance, ranks ascending. An empty node_of means a node per rank.
Groups ranks_by_node(const Request& request);
/// The same. Throws std::invalid_argument if the nodes hold different numbers of ranks.
Groups ranks_by_equal_nodes(const Request& request);

/// Double binary tree: the greatest number of edges from the top to a leaf, and the chunks that each tree's half of the
/// vector is cut into. Parameters of the method that its schedule and its formula have in common.
int double_tree_depth(CollectiveOp op, int ranks);
int double_tree_chunks(CollectiveOp op, int ranks, double bytes);

}  // namespace epocast::collectives
