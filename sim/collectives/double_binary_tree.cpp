// Two binary trees over the same ranks, each for one half of the vector, such that a rank which is an inner node of one
// is a leaf of the other. Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", Parallel Computing 35 (2009); NCCL since 2.4 has the same trees.
//
// Their key lemma: the edges of both trees can be coloured 0 and 1 such that the two edges by which a rank receives
// differ, and the two by which it sends differ. Tree edges then carry a chunk in every round of their colour's parity,
// and no rank sends or receives two messages at once. A reduction is a broadcast run backwards; an all-reduce is one
// after the other.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "sim/collectives/algorithms.hpp"

namespace epocast::collectives {
namespace {

constexpr int kNone = -1;

/// Assumed latency-bandwidth product alpha / beta in bytes; a schedule does not know the links. 2.6 us at 100 Gb/s.
constexpr double kAssumedLatencyBytes = 32 * 1024;
/// Bounds the schedule to 4 * 64 messages a rank. Filling the pipeline then adds (depth - 1) / 64 to the transfer time.
constexpr int kMaxChunks = 64;

/// parent[i] of node i; kNone at the root.
using Parents = std::vector<int>;

/// Links the full binary tree over the nodes of an odd-sized range in order: inner nodes at odd offsets, leaves at
/// even.
void link_in_order(int first, int size, int parent, Parents& parents) {
  const int inner = (size - 1) / 2;
  if (inner == 0) {
    parents[static_cast<std::size_t>(first)] = parent;
    return;
  }
  const int left = 2 * ((inner - 1) / 2) + 1;
  const int root = first + left;
  parents[static_cast<std::size_t>(root)] = parent;
  link_in_order(first, left, root, parents);
  link_in_order(root + 1, size - left - 1, root, parents);
}

/// The tree whose inner nodes are odd. An even number of nodes gets its last one as a root above the full tree.
Parents first_tree(int nodes) {
  Parents parents(static_cast<std::size_t>(nodes), kNone);
  if (nodes % 2 == 1) {
    link_in_order(0, nodes, kNone, parents);
  } else {
    link_in_order(0, nodes - 1, nodes - 1, parents);
  }
  return parents;
}

/// The tree whose inner nodes are even: the first one mirrored (even count) or shifted by one (odd count).
Parents second_tree(const Parents& first) {
  const int nodes = static_cast<int>(first.size());
  const auto node_of_role = [nodes](int role) {
    return nodes % 2 == 0 ? nodes - 1 - role : (role + nodes - 1) % nodes;
  };
  Parents second(first.size(), kNone);
  for (int role = 0; role < nodes; ++role) {
    const int parent = first[static_cast<std::size_t>(role)];
    second[static_cast<std::size_t>(node_of_role(role))] = parent == kNone ? kNone : node_of_role(parent);
  }
  return second;
}

struct Edge {
  int parent = kNone;
  int child = kNone;
  int above = kNone;  ///< the edge of the same tree that feeds `parent`
  int colour = kNone;
  int first_round = kNone;  ///< in which chunk 0 is sent downwards
};

/// The edges of both trees. If `has_top`, rank 0 is outside the trees and feeds both of their roots.
std::vector<Edge> link_trees(int ranks, bool has_top) {
  const int offset = has_top ? 1 : 0;
  const Parents first = first_tree(ranks - offset);
  std::vector<Edge> edges;
  for (const Parents& parents : {first, second_tree(first)}) {
    std::vector<int> edge_to(static_cast<std::size_t>(ranks), kNone);
    const std::size_t begin = edges.size();
    for (int node = 0; node < ranks - offset; ++node) {
      const int parent = parents[static_cast<std::size_t>(node)];
      if (parent == kNone && !has_top) continue;
      edge_to[static_cast<std::size_t>(node + offset)] = static_cast<int>(edges.size());
      edges.push_back({.parent = parent == kNone ? 0 : parent + offset, .child = node + offset});
    }
    for (std::size_t i = begin; i < edges.size(); ++i)
      edges[i].above = edge_to[static_cast<std::size_t>(edges[i].parent)];
  }
  return edges;
}

/// Each edge must differ from at most one other at its parent and one at its child, so the conflicts form paths and
/// even cycles: walking along them, alternating, colours them.
void colour(std::vector<Edge>& edges, int ranks) {
  using Pair = std::array<int, 2>;
  std::vector<Pair> sent_by(static_cast<std::size_t>(ranks), {kNone, kNone}), received_by = sent_by;
  const auto add = [](Pair& pair, int edge) {
    assert(pair[1] == kNone);
    pair[pair[0] == kNone ? 0 : 1] = edge;
  };
  for (std::size_t i = 0; i < edges.size(); ++i) {
    add(sent_by[static_cast<std::size_t>(edges[i].parent)], static_cast<int>(i));
    add(received_by[static_cast<std::size_t>(edges[i].child)], static_cast<int>(i));
  }
  const auto other = [](const Pair& pair, int edge) { return pair[0] == edge ? pair[1] : pair[0]; };
  std::vector<int> to_visit;
  for (std::size_t start = 0; start < edges.size(); ++start) {
    if (edges[start].colour != kNone) continue;
    edges[start].colour = 0;
    to_visit.push_back(static_cast<int>(start));
    while (!to_visit.empty()) {
      const int index = to_visit.back();
      to_visit.pop_back();
      const Edge& edge = edges[static_cast<std::size_t>(index)];
      for (const int rival : {other(sent_by[static_cast<std::size_t>(edge.parent)], index),
                              other(received_by[static_cast<std::size_t>(edge.child)], index)}) {
        if (rival == kNone) continue;
        int& colour = edges[static_cast<std::size_t>(rival)].colour;
        assert(colour != edge.colour);
        if (colour != kNone) continue;
        colour = 1 - edge.colour;
        to_visit.push_back(rival);
      }
    }
  }
}

/// The first round of the edge's parity after the parent has got its own first chunk.
int first_round(std::vector<Edge>& edges, Edge& edge) {
  if (edge.first_round == kNone) {
    const int earliest = edge.above == kNone ? 0 : 1 + first_round(edges, edges[static_cast<std::size_t>(edge.above)]);
    edge.first_round = earliest + (earliest + edge.colour) % 2;
  }
  return edge.first_round;
}

Rounds broadcast(const std::vector<Edge>& edges, int chunks, double chunk_bytes) {
  int last = 0;
  for (const Edge& edge : edges) last = std::max(last, edge.first_round);
  Rounds rounds(static_cast<std::size_t>(last + 2 * chunks - 1));
  for (const Edge& edge : edges)
    for (int chunk = 0; chunk < chunks; ++chunk)
      rounds[static_cast<std::size_t>(edge.first_round + 2 * chunk)].messages.push_back(
          {edge.parent, edge.child, chunk_bytes, 0});
  std::erase_if(rounds, [](const Round& round) { return round.messages.empty(); });
  return rounds;
}

Rounds reversed_to_reduce(Rounds rounds) {
  std::reverse(rounds.begin(), rounds.end());
  for (Round& round : rounds) {
    for (Message& message : round.messages) {
      std::swap(message.from, message.to);
      message.reduce_bytes = message.bytes;
    }
  }
  return rounds;
}

}  // namespace

int double_tree_depth(CollectiveOp op, int ranks) {
  const bool has_top = op != CollectiveOp::all_reduce;
  const int nodes = has_top ? ranks - 1 : ranks;
  // A full tree of an odd number of nodes N has floor(log2 N) levels of edges if balanced; see first_tree for even N.
  const auto full = [](int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; };
  const int depth = nodes % 2 == 1 ? full(nodes) : 1 + full(nodes - 1);
  return depth + (has_top ? 1 : 0);
}

int double_tree_chunks(CollectiveOp op, int ranks, double bytes) {
  // Minimises (2c + 2d - 2)(alpha + beta n/(2c)) over c, which is c^2 = (d - 1)(n/2)(beta / alpha).
  const double best = std::sqrt((double_tree_depth(op, ranks) - 1) * (bytes / 2) / kAssumedLatencyBytes);
  return std::clamp(static_cast<int>(std::lround(std::min<double>(best, kMaxChunks))), 1, kMaxChunks);
}

Rounds double_binary_tree_rounds(const Request& request) {
  std::vector<Edge> edges = link_trees(request.ranks, request.op != CollectiveOp::all_reduce);
  colour(edges, request.ranks);
  for (Edge& edge : edges) first_round(edges, edge);

  const int chunks = double_tree_chunks(request.op, request.ranks, request.bytes);
  Rounds down = broadcast(edges, chunks, request.bytes / 2 / chunks);
  if (request.op == CollectiveOp::broadcast) return down;
  if (request.op == CollectiveOp::reduce) return reversed_to_reduce(std::move(down));
  Rounds rounds = reversed_to_reduce(down);
  append(rounds, std::move(down));
  return rounds;
}

}  // namespace epocast::collectives
