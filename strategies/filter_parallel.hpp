#pragma once
// Model parallelism inside layers: every layer's filters are divided over the devices.
//
// Scope: each device computes its share of a layer's filters (output channels) for the whole batch, forward and back.
// Between layers, devices send each other the activations that the next layer's filters need, and the gradients of
// these back, where something before them is trained; layers that work channel by channel (pooling, activations, ...)
// stay where their input is. Messages are in the trace's precision. The shares come from a partition of the network's
// filters, whatever made it: they may differ from layer to layer, and a device may have none of a layer's filters, up
// to whole layers on single devices. Several batches may be under way, each with the weights that it finds: Eserol
// 2019, chapter 4. In a composition with a data axis there are replicas of all this, which sum the gradients of each
// device's run of layers behind its backward pass. Limits: filters are divided into contiguous ranges of channels,
// device after device; work and parameters of a layer are proportional to its filters. Validation: volumes of Eserol
// 2019, Tables 5.2, 5.4 and 5.6 (tests/unit/filter_parallel_test.cpp); Table 5.15 (docs/reproduce.md).

#include <utility>

#include "sim/strategy.hpp"
#include "strategies/bodies/mpmd_body.hpp"
#include "strategies/filter_parallel/parts.hpp"

namespace epocast {

class FilterParallel final : public Strategy {
 public:
  /// All workers are one team.
  explicit FilterParallel(const ConfigNode& options) : FilterParallel(options, options, {}) {}
  /// The body `filters` with a partition.
  FilterParallel(const ConfigNode& options, const AroundBody& around);
  TrainingStep compile(const StrategyContext& context) const override;
  std::int64_t batch_divisor(std::int64_t workers) const override { return teams_.replicas(workers); }
  static EntryInfo info();
  /// Of the body that this strategy is with a partition.
  static EntryInfo body_info();
  /// Whether options of a body `filters` are about a partition.
  static bool is_partition(const ConfigNode& options);

 private:
  FilterParallel(const ConfigNode& options, const ConfigNode& schedule, ReplicaTeams teams);
  std::pair<FilterParts, SpreadNetwork> divide(const WorkloadTrace& trace, int devices) const;

  ConfigNode options_;
  ReplicaTeams teams_;
  FilterExchange exchange_;
  int in_flight_;
  double copy_;  ///< s per byte
};

}  // namespace epocast
