// Pairwise exchange: in round k = 1..P-1 rank r sends to r + k straight what is meant for it. Thakur, Rabenseifner,
// Gropp, IJHPCA 2005 (all-to-all, reduce-scatter). Gather and scatter have one busy rank, so they go linearly.
// An all-to-all meets the partners of its own node first, then those of the next node and so on, as NCCL orders its
// sends (src/init.cc): in rank order most rounds would have a pair across nodes, and all would wait for it.
#include <algorithm>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

/// Whether each node's ranks are numbered one after another, and are as many as the first's.
bool are_blocks(const Groups& nodes) {
  int next = 0;
  for (const std::vector<int>& node : nodes)
    for (const int rank : node)
      if (node.size() != nodes.front().size() || rank != next++) return false;
  return true;
}

/// All pairs, node by node: as if each node had as many places as the largest, some of them empty. Unequal nodes take
/// P^2 messages in memory.
Rounds all_to_all_rounds(const Request& request) {
  const Groups nodes = ranks_by_node(request);
  const std::size_t places = std::ranges::max(nodes, {}, [](const auto& node) { return node.size(); }).size();
  const bool blocks = are_blocks(nodes);
  const double block = request.block();
  Rounds rounds;
  for (std::size_t k = 1; k < places * nodes.size(); ++k) {
    if (blocks) {
      rounds.push_back(shift_round(static_cast<int>(k), block, 0, 1, static_cast<int>(places)));
      continue;
    }
    Round round;
    for (std::size_t n = 0; n < nodes.size(); ++n)
      for (std::size_t place = 0; place < nodes[n].size(); ++place) {
        const std::vector<int>& there = nodes[(n + k / places) % nodes.size()];
        const std::size_t other = (place + k % places) % places;
        if (other < there.size()) round.messages.push_back({nodes[n][place], there[other], block, 0});
      }
    if (!round.messages.empty()) rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace

Rounds pairwise_rounds(const Request& request) {
  const double block = request.block();
  if (request.op == CollectiveOp::all_to_all) return all_to_all_rounds(request);
  Rounds rounds;
  rounds.reserve(static_cast<std::size_t>(request.ranks - 1));
  for (int k = 1; k < request.ranks; ++k) {
    switch (request.op) {
      case CollectiveOp::gather: rounds.push_back({.messages = {Message{k, 0, block, 0}}}); break;
      case CollectiveOp::scatter: rounds.push_back({.messages = {Message{0, k, block, 0}}}); break;
      case CollectiveOp::reduce_scatter: rounds.push_back(shift_round(k, block, block)); break;
      default: rounds.push_back(shift_round(k, block, 0));  // all_gather
    }
  }
  return rounds;
}

}  // namespace epocast::collectives
