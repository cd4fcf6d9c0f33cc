#pragma once
// Which of several partitions counts when some of them are heavier than asked for.

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "strategies/partitioners/partition_options.hpp"

namespace epocast {

/// Imbalances to ask for at each start: partitioners that do not keep to it may do so when asked for half.
inline std::array<double, 2> imbalances_to_ask(const PartitionOptions& options) {
  return {options.imbalance, options.imbalance / 2};
}

/// Keeps the partition that is least above the limit and, of those within it, costs least; of equals, the first.
class BestPartition {
 public:
  BestPartition(const Hypergraph& graph, const PartitionOptions& options)
      : graph_(graph),
        objective_(options.objective),
        limit_(weight_limit(graph.total_weight(), options.parts, options.imbalance) * (1 + 1e-9)) {}

  void offer(Partition partition) {
    const std::pair figure{std::max(0.0, load_balance(graph_, partition).max - limit_),
                           cut_cost(graph_, partition, objective_)};
    if (figure >= least_) return;
    least_ = figure;
    best_ = std::move(partition);
  }

  bool any() const { return !best_.part_of.empty(); }
  Partition take() { return std::move(best_); }

 private:
  const Hypergraph& graph_;
  CutObjective objective_;
  double limit_;
  std::pair<double, double> least_{std::numeric_limits<double>::infinity(), 0};
  Partition best_;
};

}  // namespace epocast
