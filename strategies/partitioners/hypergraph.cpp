#include "strategies/partitioners/hypergraph.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace epocast {

int Hypergraph::add_vertex(double weight) {
  assert(std::isfinite(weight) && weight >= 0);
  weight_.push_back(weight);
  return vertices() - 1;
}

void Hypergraph::add_net(double cost, std::span<const int> pins) {
  assert(std::isfinite(cost) && cost >= 0);
  assert(std::all_of(pins.begin(), pins.end(), [&](int pin) { return pin >= 0 && pin < vertices(); }));
  cost_.push_back(cost);
  pins_.insert(pins_.end(), pins.begin(), pins.end());
  begin_.push_back(pins_.size());
}

double Hypergraph::total_weight() const { return std::accumulate(weight_.begin(), weight_.end(), 0.0); }

std::vector<double> part_loads(const Hypergraph& graph, const Partition& partition) {
  std::vector<double> loads(static_cast<std::size_t>(partition.parts));
  for (int v = 0; v < graph.vertices(); ++v)
    loads[static_cast<std::size_t>(partition.part_of[static_cast<std::size_t>(v)])] += graph.weight(v);
  return loads;
}

namespace {

/// Counts the parts of nets; remembers which net saw a part last instead of clearing.
class PartCounter {
 public:
  PartCounter(const Hypergraph& graph, const Partition& partition)
      : graph_(graph), partition_(partition), seen_(static_cast<std::size_t>(partition.parts), -1) {}

  int count(int net) {
    int parts = 0;
    for (const int pin : graph_.pins(net)) {
      int& last = seen_[static_cast<std::size_t>(partition_.part_of[static_cast<std::size_t>(pin)])];
      if (last != net) ++parts;
      last = net;
    }
    return parts;
  }

 private:
  const Hypergraph& graph_;
  const Partition& partition_;
  std::vector<int> seen_;
};

}  // namespace

int connectivity(const Hypergraph& graph, const Partition& partition, int net) {
  return PartCounter(graph, partition).count(net);
}

double cut_cost(const Hypergraph& graph, const Partition& partition, CutObjective objective) {
  PartCounter counter(graph, partition);
  double sum = 0;
  for (int net = 0; net < graph.nets(); ++net) {
    const int parts = counter.count(net);
    if (parts > 1) sum += graph.cost(net) * (objective == CutObjective::connectivity ? parts - 1 : 1);
  }
  return sum;
}

LoadBalance load_balance(const Hypergraph& graph, const Partition& partition) {
  const std::vector<double> loads = part_loads(graph, partition);
  std::vector<bool> used(loads.size());
  for (const int part : partition.part_of) used[static_cast<std::size_t>(part)] = true;
  LoadBalance out;
  for (std::size_t part = 0; part < loads.size(); ++part) {
    if (!used[part]) continue;
    out.max = out.used_parts == 0 ? loads[part] : std::max(out.max, loads[part]);
    out.min = out.used_parts == 0 ? loads[part] : std::min(out.min, loads[part]);
    ++out.used_parts;
  }
  if (out.used_parts > 0) out.average = graph.total_weight() / out.used_parts;
  return out;
}

double weight_limit(double total_weight, int parts, double imbalance) { return (1 + imbalance) * total_weight / parts; }

}  // namespace epocast
