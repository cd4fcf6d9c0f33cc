// Binomial trees rooted at the first rank of a group: ceil(log2 P) rounds. Thakur, Rabenseifner, Gropp, IJHPCA 2005.
// The subtree below r is the contiguous range [r, r + 2^k), so scatter and gather send plain ranges.
#include <algorithm>
#include <numeric>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

Groups everyone(int ranks) {
  Groups groups(1, std::vector<int>(static_cast<std::size_t>(ranks)));
  std::iota(groups[0].begin(), groups[0].end(), 0);
  return groups;
}

/// The edges of one level, parent to child: member i feeds i + mask, whose subtree is cut off at the group's end.
/// size_of(members of that subtree) gives the bytes.
template <typename SizeOf>
Round downward(const Groups& groups, int mask, SizeOf size_of) {
  Round round;
  for (const std::vector<int>& group : groups) {
    const int size = static_cast<int>(group.size());
    for (int i = 0; i + mask < size; i += 2 * mask) {
      const int child = i + mask;
      const double bytes = size_of(std::min(mask, size - child));
      round.messages.push_back({group[static_cast<std::size_t>(i)], group[static_cast<std::size_t>(child)], bytes, 0});
    }
  }
  return round;
}

template <typename SizeOf>
Rounds from_root(const Groups& groups, SizeOf size_of) {
  Rounds rounds;
  const int size = static_cast<int>(groups.front().size());
  for (int level = ceil_log2(size) - 1; level >= 0; --level) rounds.push_back(downward(groups, 1 << level, size_of));
  return rounds;
}

/// The same edges upwards, leaves first.
template <typename SizeOf>
Rounds to_root(const Groups& groups, bool reduces, SizeOf size_of) {
  Rounds rounds = from_root(groups, size_of);
  std::reverse(rounds.begin(), rounds.end());
  for (Round& round : rounds) {
    for (Message& message : round.messages) {
      std::swap(message.from, message.to);
      if (reduces) message.reduce_bytes = message.bytes;
    }
  }
  return rounds;
}

}  // namespace

Rounds binomial_broadcast(const Groups& groups, double bytes) {
  return from_root(groups, [=](int) { return bytes; });
}

Rounds binomial_reduce(const Groups& groups, double bytes) {
  return to_root(groups, true, [=](int) { return bytes; });
}

Rounds binomial_scatter(int ranks, double block) {
  return from_root(everyone(ranks), [=](int members) { return members * block; });
}

Rounds binomial_gather(int ranks, double block) {
  return to_root(everyone(ranks), false, [=](int members) { return members * block; });
}

Rounds binomial_tree_rounds(const Request& request) {
  switch (request.op) {
    case CollectiveOp::broadcast: return binomial_broadcast(everyone(request.ranks), request.bytes);
    case CollectiveOp::reduce: return binomial_reduce(everyone(request.ranks), request.bytes);
    case CollectiveOp::scatter: return binomial_scatter(request.ranks, request.block());
    case CollectiveOp::gather: return binomial_gather(request.ranks, request.block());
    default: {  // all_reduce
      Rounds rounds = binomial_reduce(everyone(request.ranks), request.bytes);
      append(rounds, binomial_broadcast(everyone(request.ranks), request.bytes));
      return rounds;
    }
  }
}

}  // namespace epocast::collectives
