// Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS
// 1997: ceil(log2 P) rounds for any P, so fewer messages than pairwise exchange, and for all-to-all more bytes. The
// local rotations before and after cost no time here.
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

}  // namespace

Rounds bruck_rounds(const Request& request) {
  const int ranks = request.ranks;
  Rounds rounds;
  for (int mask = 1; mask < ranks; mask *= 2) {
    if (request.op == CollectiveOp::all_to_all) {
      rounds.push_back(shift_round(mask, blocks_with_bit(ranks, mask) * request.block(), 0));
    } else {  // all_gather: every rank holds `mask` blocks; the last round sends only those that are missing
      rounds.push_back(shift_round(ranks - mask, std::min(mask, ranks - mask) * request.block(), 0));
    }
  }
  return rounds;
}

}  // namespace epocast::collectives
