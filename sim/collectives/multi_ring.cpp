// Several rings through all ranks, each with an equal share of the vector. All go through the nodes in one order, but
// each enters and leaves a node at another of its ranks, and so by another network card. This is what NCCL does across
// nodes (src/graph/connect.cc; Hu et al., "Demystifying NCCL", 2025): a rank passes on what arrives piece by piece, so
// that links inside nodes and between them are busy at the same time, and latencies add up along one block's way
// (src/graph/tuning.cc). There are as many rings as the smallest node has ranks.
#include <algorithm>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {

Rounds multi_ring_rounds(const Request& request) {
  const Groups nodes = ranks_by_node(request);
  const auto by_size = [](const std::vector<int>& node) { return node.size(); };
  if (nodes.size() == 1 || std::ranges::max(nodes, {}, by_size).size() == 1) return ring_rounds(request);

  const std::size_t rings = std::ranges::min(nodes, {}, by_size).size();
  const double share = request.block() / static_cast<double>(rings);
  Round pass{.repeat = request.ranks - 1};
  for (std::size_t ring = 0; ring < rings; ++ring) {
    std::vector<int> order;
    for (const std::vector<int>& node : nodes)
      for (std::size_t i = 0; i < node.size(); ++i) order.push_back(node[(ring + i) % node.size()]);
    for (std::size_t i = 0; i < order.size(); ++i)
      pass.messages.push_back({order[i], order[(i + 1) % order.size()], share, 0});
  }
  Round reducing = pass;
  for (Message& message : reducing.messages) message.reduce_bytes = message.bytes;
  if (request.op == CollectiveOp::reduce_scatter) return {std::move(reducing)};
  if (request.op == CollectiveOp::all_gather) return {std::move(pass)};
  return {std::move(reducing), std::move(pass)};
}

}  // namespace epocast::collectives
