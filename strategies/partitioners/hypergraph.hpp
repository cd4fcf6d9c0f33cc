#pragma once
// Hypergraphs, partitions of their vertices, and what a partition costs.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace epocast {

/// Vertices are tasks with a weight (work). A net joins the tasks that need the same data, and costs that data's size.
/// Vertices and nets are numbered from 0.
class Hypergraph {
 public:
  /// REQUIRES: weight finite and >= 0.
  int add_vertex(double weight);
  /// REQUIRES: pins are vertices, none twice; cost finite and >= 0.
  void add_net(double cost, std::span<const int> pins);

  int vertices() const { return static_cast<int>(weight_.size()); }
  int nets() const { return static_cast<int>(cost_.size()); }
  std::size_t pin_count() const { return pins_.size(); }
  double weight(int vertex) const { return weight_[static_cast<std::size_t>(vertex)]; }
  double cost(int net) const { return cost_[static_cast<std::size_t>(net)]; }
  std::span<const int> pins(int net) const {
    const auto n = static_cast<std::size_t>(net);
    return std::span(pins_).subspan(begin_[n], begin_[n + 1] - begin_[n]);
  }
  double total_weight() const;

 private:
  std::vector<double> weight_, cost_;
  std::vector<int> pins_;
  std::vector<std::size_t> begin_{0};
};

/// Part of each vertex, 0 to parts - 1. A part may be empty.
struct Partition {
  int parts = 1;
  std::vector<int> part_of;
};

/// What is to be minimised.
enum class CutObjective {
  connectivity,  ///< sum over nets of cost x (parts that it joins - 1)
  cut_net,       ///< sum of the costs of nets that join more than one part
};

/// Weight of each part.
std::vector<double> part_loads(const Hypergraph& graph, const Partition& partition);

/// Parts that a net joins.
int connectivity(const Hypergraph& graph, const Partition& partition, int net);

/// The objective's value, net by net from its definition.
double cut_cost(const Hypergraph& graph, const Partition& partition, CutObjective objective);

/// How far apart the parts are.
struct LoadBalance {
  double max = 0, min = 0, average = 0;  ///< over the parts that are not empty
  int used_parts = 0;                    ///< with at least one vertex
};
LoadBalance load_balance(const Hypergraph& graph, const Partition& partition);

/// Largest weight of a part: (1 + imbalance) x total / parts.
double weight_limit(double total_weight, int parts, double imbalance);

}  // namespace epocast
