// Hierarchical: rings inside the nodes and, for each local index, a ring through the nodes, so that the slow links
// between nodes carry 1/m of the vector (m ranks per node): the "2D-torus all-reduce" of Mikami et al., "Massively
// distributed SGD: ImageNet/ResNet-50 training in a flash", 2018. Broadcast and reduce use binomial trees.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

/// All groups pass blocks around their rings at the same time, one block fewer than the group has members.
Rounds rings(const Groups& groups, double block, bool reduces) {
  const std::size_t size = groups.front().size();
  if (size == 1) return {};
  Round round{.repeat = static_cast<int>(size) - 1};
  for (const std::vector<int>& group : groups)
    for (std::size_t i = 0; i < size; ++i)
      round.messages.push_back({group[i], group[(i + 1) % size], block, reduces ? block : 0});
  return {round};
}

/// Group i holds the i-th rank of every node.
Groups by_local_index(const Groups& nodes) {
  Groups groups(nodes.front().size());
  for (const std::vector<int>& node : nodes)
    for (std::size_t local = 0; local < node.size(); ++local) groups[local].push_back(node[local]);
  return groups;
}

}  // namespace

Groups ranks_by_node(const Request& request) {
  Groups nodes;
  std::map<int, std::size_t> index_of;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const int node = request.node_of.empty() ? rank : request.node_of[static_cast<std::size_t>(rank)];
    const auto [place, is_new] = index_of.try_emplace(node, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[place->second].push_back(rank);
  }
  return nodes;
}

Groups ranks_by_equal_nodes(const Request& request) {
  Groups nodes = ranks_by_node(request);
  const auto name = [&](const std::vector<int>& node) {
    return std::to_string(request.node_of.empty() ? node[0] : request.node_of[static_cast<std::size_t>(node[0])]);
  };
  for (const std::vector<int>& node : nodes) {
    if (node.size() == nodes[0].size()) continue;
    throw std::invalid_argument("a hierarchical collective needs the same number of ranks on every node: node " +
                                name(nodes[0]) + " has " + std::to_string(nodes[0].size()) + ", node " + name(node) +
                                " has " + std::to_string(node.size()));
  }
  return nodes;
}

Rounds hierarchical_rounds(const Request& request) {
  const Groups nodes = ranks_by_equal_nodes(request);
  const Groups across = by_local_index(nodes);
  const bool is_tree = request.op == CollectiveOp::broadcast || request.op == CollectiveOp::reduce;
  if (!is_tree && (nodes.size() == 1 || across.size() == 1)) return ring_rounds(request);

  const double node_block = request.bytes / static_cast<double>(across.size());  // of a vector shared out within a node
  const Groups leaders = {across.front()};
  Rounds rounds;
  switch (request.op) {
    case CollectiveOp::reduce_scatter:
      rounds = rings(nodes, node_block, true);
      append(rounds, rings(across, request.block(), true));
      break;
    case CollectiveOp::all_gather:
      rounds = rings(across, request.block(), false);
      append(rounds, rings(nodes, node_block, false));
      break;
    case CollectiveOp::broadcast:
      rounds = binomial_broadcast(leaders, request.bytes);
      append(rounds, binomial_broadcast(nodes, request.bytes));
      break;
    case CollectiveOp::reduce:
      rounds = binomial_reduce(nodes, request.bytes);
      append(rounds, binomial_reduce(leaders, request.bytes));
      break;
    default:  // all_reduce
      rounds = rings(nodes, node_block, true);
      append(rounds, rings(across, request.block(), true));
      append(rounds, rings(across, request.block(), false));
      append(rounds, rings(nodes, node_block, false));
  }
  return rounds;
}

}  // namespace epocast::collectives
