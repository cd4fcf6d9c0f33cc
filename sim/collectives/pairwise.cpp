// Pairwise exchange: in round k = 1..P-1 rank r sends to r + k straight what is meant for it. Thakur, Rabenseifner,
// Gropp, IJHPCA 2005 (all-to-all, reduce-scatter). Gather and scatter have one busy rank, so they go linearly.
// An all-to-all meets the partners of its own node first, then those of the next node and so on, as NCCL orders its
// sends (src/init.cc): in rank order most rounds would have a pair across nodes, and all would wait for it.
#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

/// Ranks on each node if all have as many and number them one after another; 1 if not.
int consecutive_ranks_per_node(const Request& request) {
  const auto size = static_cast<int>(ranks_by_node(request).front().size());
  if (request.ranks % size != 0) return 1;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const auto first = static_cast<std::size_t>(rank - rank % size);
    const bool starts_node = rank % size == 0;
    if (request.node_of[static_cast<std::size_t>(rank)] != request.node_of[first]) return 1;
    if (starts_node && rank > 0 && request.node_of[first] == request.node_of[first - 1]) return 1;
  }
  return size;
}

}  // namespace

Rounds pairwise_rounds(const Request& request) {
  const double block = request.block();
  const bool heeds_nodes = request.op == CollectiveOp::all_to_all && !request.node_of.empty();
  const int per_node = heeds_nodes ? consecutive_ranks_per_node(request) : 1;
  Rounds rounds;
  rounds.reserve(static_cast<std::size_t>(request.ranks - 1));
  for (int k = 1; k < request.ranks; ++k) {
    switch (request.op) {
      case CollectiveOp::gather: rounds.push_back({.messages = {Message{k, 0, block, 0}}}); break;
      case CollectiveOp::scatter: rounds.push_back({.messages = {Message{0, k, block, 0}}}); break;
      case CollectiveOp::reduce_scatter: rounds.push_back(shift_round(k, block, block)); break;
      default:  // all_to_all, all_gather
        rounds.push_back(shift_round(k, block, 0, 1, per_node));
    }
  }
  return rounds;
}

}  // namespace epocast::collectives
