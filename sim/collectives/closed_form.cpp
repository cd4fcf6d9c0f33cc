// Closed forms in the alpha-beta-gamma model (Hockney's, plus gamma for the reduction): a message of m bytes takes
// alpha + beta m, and combining it takes gamma m. n is the vector [B], P the number of ranks, L = ceil(log2 P).
// Written from the papers, not from the schedules; tests hold one against the other.
//
// All are exact for rounds on an idle star of equal full-duplex links and any P, but the double binary tree's, which is
// an upper bound.
// Sources: [TRG] Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005. [Chan] Chan, Heimlich, Purkayastha, van de Geijn,
// "Collective communication: theory, practice, and experience", 2007. [Bruck] Bruck et al., IEEE TPDS 8(11), 1997.
// [SST] Sanders, Speck, Traeff, Parallel Computing 35, 2009.
#include <algorithm>
#include <bit>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

/// alpha messages + beta bytes + gamma reduced [s].
double cost(const AlphaBetaGamma& link, double messages, double bytes, double reduced) {
  return messages * link.alpha + bytes * link.beta + reduced * link.gamma;
}

/// Ring over P ranks of a vector of n bytes, one direction [TRG, Chan]:
/// (P-1) alpha + (P-1)/P n (beta [+ gamma]).
double ring_pass(const AlphaBetaGamma& link, double ranks, double bytes, bool reduces) {
  const double moved = (ranks - 1) / ranks * bytes;
  return cost(link, ranks - 1, moved, reduces ? moved : 0);
}

/// Binomial tree, whole vector in every round [TRG, broadcast]: L (alpha + n beta [+ n gamma]).
double binomial_pass(const AlphaBetaGamma& link, int ranks, double bytes, bool reduces) {
  const double rounds = ceil_log2(ranks);
  return cost(link, rounds, rounds * bytes, reduces ? rounds * bytes : 0);
}

/// Binomial gather or scatter [Chan]: the root sees every block but its own once. L alpha + (P-1)/P n beta.
double binomial_blocks(const AlphaBetaGamma& link, int ranks, double bytes) {
  return cost(link, ceil_log2(ranks), bytes - bytes / ranks, 0);
}

/// Bytes on the longest path of one recursive halving or doubling of P = q + r ranks, q a power of two, where r core
/// ranks own two blocks. In the step of distance d the fullest d neighbours own d + min(r, d) blocks of n/P. Those
/// steps lie on rank 0's path, which no other overtakes. For r = 0 the sum is (P-1)/P n [TRG, all-gather].
double recursive_bytes(int ranks, double bytes) {
  const int core = largest_power_of_two(ranks);
  const int extras = ranks - core;
  double blocks = core - 1;
  for (int distance = 1; distance < core; distance *= 2) blocks += std::min(extras, distance);
  return blocks * bytes / ranks;
}

/// Recursive halving [TRG, reduce-scatter]: log2 q (alpha) + recursive_bytes (beta + gamma); other P first fold the
/// extra ranks' whole vectors, alpha + n (beta + gamma), and last send them their block, alpha + n/P beta.
double recursive_halving(const AlphaBetaGamma& link, int ranks, double bytes) {
  const int core = largest_power_of_two(ranks);
  const double moved = recursive_bytes(ranks, bytes);
  double time = cost(link, ceil_log2(core), moved, moved);
  if (core != ranks) time += cost(link, 1, bytes, bytes) + cost(link, 1, bytes / ranks, 0);
  return time;
}

/// Recursive doubling of blocks [TRG, all-gather]: log2 q alpha + recursive_bytes beta; other P fold one block and
/// unfold the rest.
double recursive_all_gather(const AlphaBetaGamma& link, int ranks, double bytes) {
  const int core = largest_power_of_two(ranks);
  double time = cost(link, ceil_log2(core), recursive_bytes(ranks, bytes), 0);
  if (core != ranks) time += cost(link, 1, bytes / ranks, 0) + cost(link, 1, bytes - bytes / ranks, 0);
  return time;
}

/// Folding P - q ranks' vectors into the core before an all-reduce and unfolding the result after it [TRG, all-reduce]:
/// 2 alpha + 2 n beta + n gamma, unless P is a power of two.
double fold_all_reduce(const AlphaBetaGamma& link, int ranks, double bytes) {
  return largest_power_of_two(ranks) == ranks ? 0 : cost(link, 2, 2 * bytes, bytes);
}

}  // namespace

double ring_time(const Request& request, const AlphaBetaGamma& link) {
  switch (request.op) {
    case CollectiveOp::reduce_scatter: return ring_pass(link, request.ranks, request.bytes, true);
    case CollectiveOp::all_gather: return ring_pass(link, request.ranks, request.bytes, false);
    default: {  // all_reduce: 2(P-1) alpha + 2(P-1)/P n beta + (P-1)/P n gamma
      const double share = (request.ranks - 1.0) / request.ranks * request.bytes;
      return cost(link, 2.0 * (request.ranks - 1), 2 * share, share);
    }
  }
}

double halving_doubling_time(const Request& request, const AlphaBetaGamma& link) {
  const int ranks = request.ranks;
  const double bytes = request.bytes;
  switch (request.op) {
    case CollectiveOp::reduce_scatter: return recursive_halving(link, ranks, bytes);
    case CollectiveOp::all_gather: return recursive_all_gather(link, ranks, bytes);
    case CollectiveOp::broadcast:  // scatter and all-gather [TRG after van de Geijn]
      return binomial_blocks(link, ranks, bytes) + recursive_all_gather(link, ranks, bytes);
    case CollectiveOp::reduce:  // reduce-scatter and gather [TRG after Rabenseifner]
      return recursive_halving(link, ranks, bytes) + binomial_blocks(link, ranks, bytes);
    default: {  // all_reduce [TRG after Rabenseifner]: 2 log2 q alpha + 2(q-1)/q n beta + (q-1)/q n gamma
      const double core = largest_power_of_two(ranks);
      const double share = (core - 1) / core * bytes;
      return cost(link, 2.0 * ceil_log2(largest_power_of_two(ranks)), 2 * share, share) +
             fold_all_reduce(link, ranks, bytes);
    }
  }
}

double recursive_doubling_time(const Request& request, const AlphaBetaGamma& link) {
  if (request.op == CollectiveOp::all_gather) return recursive_all_gather(link, request.ranks, request.bytes);
  // all_reduce [TRG]: log2 q (alpha + n beta + n gamma)
  const double steps = ceil_log2(largest_power_of_two(request.ranks));
  return cost(link, steps, steps * request.bytes, steps * request.bytes) +
         fold_all_reduce(link, request.ranks, request.bytes);
}

double binomial_tree_time(const Request& request, const AlphaBetaGamma& link) {
  switch (request.op) {
    case CollectiveOp::broadcast: return binomial_pass(link, request.ranks, request.bytes, false);
    case CollectiveOp::reduce: return binomial_pass(link, request.ranks, request.bytes, true);
    case CollectiveOp::gather:
    case CollectiveOp::scatter: return binomial_blocks(link, request.ranks, request.bytes);
    default:  // all_reduce
      return binomial_pass(link, request.ranks, request.bytes, true) +
             binomial_pass(link, request.ranks, request.bytes, false);
  }
}

double double_binary_tree_time(const Request& request, const AlphaBetaGamma& link) {
  // [SST]: each edge carries its tree's c chunks of n/(2c) in every other round, and each of the
  // d levels adds at most two rounds, so a broadcast takes at most 2c + 2(d - 1) rounds. Two ranks have one edge per
  // tree and direction, in an all-reduce without a rival, so it is busy in every round: c rounds.
  const int chunks = double_tree_chunks(request.op, request.ranks, request.bytes);
  const int depth = double_tree_depth(request.op, request.ranks);
  const bool has_rivals = request.ranks > 2 || request.op != CollectiveOp::all_reduce;
  const double rounds = has_rivals ? 2 * chunks + 2 * (depth - 1) : chunks;
  const double moved = rounds * request.bytes / (2 * chunks);
  const double down = cost(link, rounds, moved, 0);
  const double up = cost(link, rounds, moved, moved);
  if (request.op == CollectiveOp::broadcast) return down;
  return request.op == CollectiveOp::reduce ? up : up + down;
}

double hierarchical_time(const Request& request, const AlphaBetaGamma& link) {
  // Two-dimensional ring: m ranks in a node on the whole vector, N nodes on 1/m of it [Chan, meshes]. On equal links
  // the bytes add up to the flat ring's, (P-1)/P n a pass, but the messages to m + N - 2 instead of m N - 1.
  const Groups nodes = ranks_by_equal_nodes(request);
  const auto in_node = static_cast<int>(nodes.front().size());
  const auto across = static_cast<int>(nodes.size());
  const auto both = [&](bool reduces) {
    return ring_pass(link, in_node, request.bytes, reduces) + ring_pass(link, across, request.bytes / in_node, reduces);
  };
  const auto trees = [&](bool reduces) {
    return binomial_pass(link, in_node, request.bytes, reduces) + binomial_pass(link, across, request.bytes, reduces);
  };
  switch (request.op) {
    case CollectiveOp::reduce_scatter: return both(true);
    case CollectiveOp::all_gather: return both(false);
    case CollectiveOp::broadcast: return trees(false);
    case CollectiveOp::reduce: return trees(true);
    default:  // all_reduce
      return both(true) + both(false);
  }
}

double pairwise_time(const Request& request, const AlphaBetaGamma& link) {
  // P-1 messages of n/P, all different [TRG]; for gather and scatter it is the root's link that counts.
  const double moved = request.bytes - request.block();
  return cost(link, request.ranks - 1, moved, request.op == CollectiveOp::reduce_scatter ? moved : 0);
}

double bruck_time(const Request& request, const AlphaBetaGamma& link) {
  const double moved = request.bytes - request.block();
  const auto pass = [&](bool reduces) {  // [Bruck, TRG]: L alpha + (P-1)/P n beta
    return cost(link, ceil_log2(request.ranks), moved, reduces ? moved : 0);
  };
  if (request.op == CollectiveOp::all_gather) return pass(false);
  if (request.op == CollectiveOp::reduce_scatter) return pass(true);
  if (request.op == CollectiveOp::all_reduce) return pass(true) + pass(false);
  // all_to_all [Bruck, TRG]: block i makes one hop per one in its binary digits, L alpha + n/P beta sum popcount(i),
  // which for a power of two is n/2 log2 P.
  double hops = 0;
  for (unsigned block = 1; block < static_cast<unsigned>(request.ranks); ++block) hops += std::popcount(block);
  return cost(link, ceil_log2(request.ranks), hops * request.block(), 0);
}

}  // namespace epocast::collectives
