// Algorithms in which rank r exchanges with r xor 2^k. Thakur, Rabenseifner, Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 2005; Rabenseifner 2004 for halving-doubling.
//
// Other than powers of two are folded: with P = core + extras and core a power of two, rank core+j hands its vector to
// rank j before, and gets the result back from it after.
#include <algorithm>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

/// The power-of-two core that exchanges, and which blocks its ranks stand for.
struct Core {
  explicit Core(int ranks) : size(largest_power_of_two(ranks)), extras(ranks - size) {}

  int size;
  int extras;

  /// Blocks owned by the aligned group of `group` core ranks around `rank`, if each folded core rank owns two.
  int owned(int rank, int group) const {
    const int first = rank & ~(group - 1);
    return group + std::clamp(extras - first, 0, group);
  }
};

Round fold(const Core& core, double bytes, double reduce_bytes) {
  Round round;
  for (int j = 0; j < core.extras; ++j) round.messages.push_back({core.size + j, j, bytes, reduce_bytes});
  return round;
}

Round unfold(const Core& core, double bytes) {
  Round round;
  for (int j = 0; j < core.extras; ++j) round.messages.push_back({j, core.size + j, bytes, 0});
  return round;
}

/// Every core rank exchanges with rank xor mask; blocks_sent(rank) blocks of `block` bytes.
template <typename BlocksSent>
Round exchange(const Core& core, int mask, double block, bool reduces, BlocksSent blocks_sent) {
  if (core.extras == 0) {
    const double bytes = blocks_sent(0) * block;
    return exclusive_or_round(mask, bytes, reduces ? bytes : 0);
  }
  Round round;
  round.messages.reserve(static_cast<std::size_t>(core.size));
  for (int rank = 0; rank < core.size; ++rank) {
    const double bytes = blocks_sent(rank) * block;
    round.messages.push_back({rank, rank ^ mask, bytes, reduces ? bytes : 0});
  }
  return round;
}

/// Recursive halving: each rank sends what its partner's half of the group owns, and keeps its own half.
Rounds halving(const Core& core, double block, auto owned) {
  Rounds rounds;
  for (int mask = core.size / 2; mask >= 1; mask /= 2)
    rounds.push_back(exchange(core, mask, block, true, [&](int rank) { return owned(rank ^ mask, mask); }));
  return rounds;
}

/// Recursive doubling: each rank sends all that its group has collected so far.
Rounds doubling(const Core& core, double block, auto owned) {
  Rounds rounds;
  for (int mask = 1; mask < core.size; mask *= 2)
    rounds.push_back(exchange(core, mask, block, false, [&](int rank) { return owned(rank, mask); }));
  return rounds;
}

Rounds reduce_scatter(const Request& request) {
  const Core core(request.ranks);
  Rounds rounds;
  if (core.extras > 0) rounds.push_back(fold(core, request.bytes, request.bytes));
  append(rounds, halving(core, request.block(), [&](int rank, int group) { return core.owned(rank, group); }));
  if (core.extras > 0) rounds.push_back(unfold(core, request.block()));
  return rounds;
}

Rounds all_gather(const Request& request) {
  const Core core(request.ranks);
  Rounds rounds;
  if (core.extras > 0) rounds.push_back(fold(core, request.block(), 0));
  append(rounds, doubling(core, request.block(), [&](int rank, int group) { return core.owned(rank, group); }));
  if (core.extras > 0) rounds.push_back(unfold(core, request.bytes - request.block()));  // it has its own block
  return rounds;
}

/// Folds the vector, runs `inner` on the core, and hands the result back.
Rounds folded_all_reduce(const Request& request, Rounds inner) {
  const Core core(request.ranks);
  Rounds rounds;
  if (core.extras > 0) rounds.push_back(fold(core, request.bytes, request.bytes));
  append(rounds, std::move(inner));
  if (core.extras > 0) rounds.push_back(unfold(core, request.bytes));
  return rounds;
}

}  // namespace

Rounds halving_doubling_rounds(const Request& request) {
  const Core core(request.ranks);
  Rounds rounds;
  switch (request.op) {
    case CollectiveOp::reduce_scatter: return reduce_scatter(request);
    case CollectiveOp::all_gather: return all_gather(request);
    case CollectiveOp::broadcast:  // van de Geijn: scatter, then all-gather
      rounds = binomial_scatter(request.ranks, request.block());
      append(rounds, all_gather(request));
      return rounds;
    case CollectiveOp::reduce:
      rounds = reduce_scatter(request);
      append(rounds, binomial_gather(request.ranks, request.block()));
      return rounds;
    default: {  // all_reduce: within the core every rank owns one of core.size blocks
      const auto one_each = [](int, int group) { return group; };
      const double block = request.bytes / core.size;
      rounds = halving(core, block, one_each);
      append(rounds, doubling(core, block, one_each));
      return folded_all_reduce(request, std::move(rounds));
    }
  }
}

Rounds recursive_doubling_rounds(const Request& request) {
  if (request.op == CollectiveOp::all_gather) return all_gather(request);
  const Core core(request.ranks);
  Rounds rounds;
  for (int mask = 1; mask < core.size; mask *= 2)
    rounds.push_back(exchange(core, mask, request.bytes, true, [](int) { return 1; }));
  return folded_all_reduce(request, std::move(rounds));
}

}  // namespace epocast::collectives
