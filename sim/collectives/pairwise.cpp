// Pairwise exchange: in round k = 1..P-1 rank r sends to r + k straight what is meant for it. Thakur, Rabenseifner,
// Gropp, IJHPCA 2005 (all-to-all, reduce-scatter). Gather and scatter have one busy rank, so they go linearly.
#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {

Rounds pairwise_rounds(const Request& request) {
  const double block = request.block();
  Rounds rounds;
  rounds.reserve(static_cast<std::size_t>(request.ranks - 1));
  for (int k = 1; k < request.ranks; ++k) {
    switch (request.op) {
      case CollectiveOp::gather: rounds.push_back({.messages = {Message{k, 0, block, 0}}}); break;
      case CollectiveOp::scatter: rounds.push_back({.messages = {Message{0, k, block, 0}}}); break;
      case CollectiveOp::reduce_scatter: rounds.push_back(shift_round(k, block, block)); break;
      default:  // all_to_all, all_gather
        rounds.push_back(shift_round(k, block, 0));
    }
  }
  return rounds;
}

}  // namespace epocast::collectives
