#include "strategies/layerwise/elimination.hpp"

#include <algorithm>
#include <deque>

namespace epocast {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

CostTable transposed(const CostTable& table) {
  CostTable out(table.columns, table.rows);
  for (std::size_t r = 0; r < table.rows; ++r)
    for (std::size_t c = 0; c < table.columns; ++c) out(c, r) = table(r, c);
  return out;
}

/// Equation 2 without the choice that makes the minimum: that is found again when the elimination is undone.
CostTable joined(const CostTable& first, const std::vector<double>& between, const CostTable& second) {
  CostTable out(first.rows, second.columns, kInfinite);
  for (std::size_t u = 0; u < first.rows; ++u) {
    double* row = &out.cost[u * second.columns];
    for (std::size_t w = 0; w < between.size(); ++w) {
      const double cost = first(u, w) + between[w];
      const double* next = &second.cost[w * second.columns];
      for (std::size_t v = 0; v < second.columns; ++v) row[v] = std::min(row[v], cost + next[v]);
    }
  }
  return out;
}

class Elimination {
 public:
  explicit Elimination(const CostGraph& graph) : nodes_(graph.nodes), gone_(graph.nodes.size(), false) {
    for (const CostGraph::Edge& edge : graph.edges) edges_.push_back({edge.from, edge.to, edge.table, false});
  }

  Optimum run(std::size_t most_tries) {
    Optimum out;
    merge_all();
    while (eliminate(true)) {
    }
    out.left_by_paper = static_cast<std::size_t>(std::ranges::count(gone_, false));
    while (eliminate(false)) {
    }
    choice_.assign(nodes_.size(), 0);
    out.enumerated = enumerate(most_tries);
    while (!undo_.empty()) {
      undo(undo_.back());
      undo_.pop_back();
    }
    out.choice = choice_;
    return out;
  }

 private:
  struct Edge {
    std::size_t from = 0, to = 0;
    CostTable table;
    bool gone = false;
  };
  /// A node that was taken out, with tables from each neighbour's configurations to its own.
  struct Removed {
    std::size_t node = 0;
    std::vector<double> cost;
    std::vector<std::pair<std::size_t, CostTable>> neighbours;
  };

  std::vector<std::size_t> edges_of(std::size_t node) const {
    std::vector<std::size_t> out;
    for (std::size_t e = 0; e < edges_.size(); ++e)
      if (!edges_[e].gone && (edges_[e].from == node || edges_[e].to == node)) out.push_back(e);
    return out;
  }

  /// Equation 3, whatever the directions.
  void merge(std::size_t e) {
    for (std::size_t other = 0; other < edges_.size(); ++other) {
      if (other == e || edges_[other].gone) continue;
      const bool same = edges_[other].from == edges_[e].from && edges_[other].to == edges_[e].to;
      const bool against = edges_[other].from == edges_[e].to && edges_[other].to == edges_[e].from;
      if (!same && !against) continue;
      const CostTable& table = edges_[other].table;
      for (std::size_t r = 0; r < edges_[e].table.rows; ++r)
        for (std::size_t c = 0; c < edges_[e].table.columns; ++c)
          edges_[e].table(r, c) += same ? table(r, c) : table(c, r);
      edges_[other].gone = true;
      edges_[other].table = {};
    }
  }

  void merge_all() {
    for (std::size_t e = 0; e < edges_.size(); ++e)
      if (!edges_[e].gone) merge(e);
  }

  /// Takes out one node, if there is one. `as_published`: with one edge in and one out only.
  bool eliminate(bool as_published) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (gone_[node]) continue;
      std::vector<std::size_t> mine = edges_of(node);
      if (mine.size() > 2 || (as_published && mine.size() != 2)) continue;
      if (as_published && (edges_[mine[0]].to == node) == (edges_[mine[1]].to == node)) continue;
      // The new edge goes from where one came from.
      if (mine.size() == 2 && edges_[mine[0]].from == node) std::swap(mine[0], mine[1]);
      take_out(node, mine);
      return true;
    }
    return false;
  }

  /// From the other end's configurations to the node's.
  std::pair<std::size_t, CostTable> towards(std::size_t node, std::size_t e) {
    Edge& edge = edges_[e];
    edge.gone = true;
    if (edge.to == node) return {edge.from, std::move(edge.table)};
    return {edge.to, transposed(edge.table)};
  }

  void take_out(std::size_t node, const std::vector<std::size_t>& mine) {
    Removed removed{node, nodes_[node], {}};
    for (const std::size_t e : mine) removed.neighbours.push_back(towards(node, e));
    gone_[node] = true;
    if (removed.neighbours.size() == 2) {
      auto& [u, first] = removed.neighbours[0];
      auto& [v, second] = removed.neighbours[1];
      edges_.push_back({u, v, joined(first, removed.cost, transposed(second)), false});
      merge(edges_.size() - 1);
    } else if (removed.neighbours.size() == 1) {
      auto& [u, table] = removed.neighbours[0];
      for (std::size_t r = 0; r < table.rows; ++r) {
        double least = kInfinite;
        for (std::size_t c = 0; c < table.columns; ++c) least = std::min(least, table(r, c) + removed.cost[c]);
        nodes_[u][r] += least;
      }
    }
    undo_.push_back(std::move(removed));
  }

  void undo(const Removed& removed) {
    double least = kInfinite;
    for (std::size_t c = 0; c < removed.cost.size(); ++c) {
      double cost = removed.cost[c];
      for (const auto& [other, table] : removed.neighbours) cost += table(choice_[other], c);
      if (c > 0 && !(cost < least)) continue;
      least = cost;
      choice_[removed.node] = c;
    }
  }

  /// Depth first over the nodes that are left, each next to as many earlier ones as possible. Returns how many.
  std::size_t enumerate(std::size_t most_tries) {
    std::vector<std::size_t> order;
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (!gone_[node]) order.push_back(node);
    std::vector<double> rest(order.size() + 1, 0);  // the least that nodes from here on can cost
    for (std::size_t i = order.size(); i-- > 0;) rest[i] = rest[i + 1] + *std::ranges::min_element(nodes_[order[i]]);
    std::vector<std::size_t> trial(nodes_.size(), 0);
    std::vector<bool> placed(nodes_.size(), false);
    double best = kInfinite;
    std::size_t tries = 0;
    const auto place = [&](auto& self, std::size_t i, double cost) -> void {
      if (i == order.size()) {
        if (cost < best || tries == 0) {
          best = cost;
          choice_ = trial;
        }
        return;
      }
      const std::size_t node = order[i];
      const std::vector<std::size_t> mine = edges_of(node);
      placed[node] = true;
      for (std::size_t c = 0; c < nodes_[node].size(); ++c) {
        if (++tries > most_tries)
          throw SearchTooLarge(
              "too many operators are left that cannot be eliminated; allow fewer degrees or dimensions");
        trial[node] = c;
        double now = cost + nodes_[node][c];
        for (const std::size_t e : mine) {
          const std::size_t other = edges_[e].from == node ? edges_[e].to : edges_[e].from;
          if (placed[other])
            now += edges_[e].from == node ? edges_[e].table(c, trial[other]) : edges_[e].table(trial[other], c);
        }
        if (now + rest[i + 1] < best) self(self, i + 1, now);
      }
      placed[node] = false;
    };
    if (!order.empty()) place(place, 0, 0);
    return order.size() > 1 ? order.size() : 0;
  }

  std::vector<std::vector<double>> nodes_;
  std::vector<bool> gone_;
  std::vector<Edge> edges_;
  std::vector<Removed> undo_;
  std::vector<std::size_t> choice_;
};

}  // namespace

double CostGraph::cost(const std::vector<std::size_t>& choice) const {
  double out = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) out += nodes[node][choice[node]];
  for (const Edge& edge : edges) out += edge.table(choice[edge.from], choice[edge.to]);
  return out;
}

Optimum minimise(const CostGraph& graph, std::size_t most_tries) {
  Optimum out = Elimination(graph).run(most_tries);
  out.cost = graph.cost(out.choice);
  return out;
}

}  // namespace epocast
