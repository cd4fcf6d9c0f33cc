// Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS
// 1997: ceil(log2 P) rounds for any P, so fewer messages than pairwise exchange, and for all-to-all more bytes. The
// local rotations before and after cost no time here. A reduce-scatter is the all-gather run backwards, and an
// all-reduce both, in which all ranks do the same for any P (Bar-Noy, Kipnis, Schieber, "An optimal algorithm for
// computing census functions in message-passing systems", Parallel Processing Letters 1993).
#include <algorithm>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

/// How many of the block numbers 0..ranks-1 have the bit `mask` set. Block i has to travel i ranks, so it moves by
/// `mask` in that round.
int blocks_with_bit(int ranks, int mask) {
  int count = 0;
  for (int block = 0; block < ranks; ++block) count += (block & mask) != 0;
  return count;
}

Rounds exchange_blocks(const Request& request) {
  Rounds rounds;
  for (int mask = 1; mask < request.ranks; mask *= 2)
    rounds.push_back(shift_round(mask, blocks_with_bit(request.ranks, mask) * request.block(), 0));
  return rounds;
}

/// Every rank holds `mask` blocks; the last round sends only those that are missing.
Rounds gather_blocks(const Request& request) {
  Rounds rounds;
  for (int mask = 1; mask < request.ranks; mask *= 2)
    rounds.push_back(shift_round(request.ranks - mask, std::min(mask, request.ranks - mask) * request.block(), 0));
  return rounds;
}

Rounds scatter_sums(const Request& request) {
  Rounds rounds;
  for (int mask = largest_power_of_two(request.ranks - 1); mask >= 1; mask /= 2) {
    const double bytes = std::min(mask, request.ranks - mask) * request.block();
    rounds.push_back(shift_round(mask, bytes, bytes));
  }
  return rounds;
}

}  // namespace

Rounds bruck_rounds(const Request& request) {
  if (request.op == CollectiveOp::all_to_all) return exchange_blocks(request);
  if (request.op == CollectiveOp::all_gather) return gather_blocks(request);
  Rounds rounds = scatter_sums(request);
  if (request.op == CollectiveOp::all_reduce) append(rounds, gather_blocks(request));
  return rounds;
}

}  // namespace epocast::collectives
