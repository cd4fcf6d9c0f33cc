#pragma once
// Single operations of a training step on the devices of a replica, and replicas of that: operator placement
// (Mirhoseini et al. 2017; ParDNN: Qararyah 2020) within data parallelism.
//
// Scope: the step's operations, or the passes of its layers, are given devices by a method of strategies/placement, so
// that memory suffices and the step is short, with links as the options have them; what the platform makes of it is
// simulated, transfer by transfer. Each device runs one node at a time, first in, first out, and sends one output at a
// time. Replicas add up each gradient as soon as it is there. Limits: no accumulation, no recomputation; what belongs
// to no layer takes no time. Validation: tests/unit/operators_test.cpp, docs/placement.md.

#include "sim/strategy.hpp"
#include "strategies/bodies/mpmd_body.hpp"
#include "strategies/placement/methods.hpp"
#include "strategies/placement/step_nodes.hpp"

namespace epocast {

class Operators final : public Strategy {
 public:
  /// Neighbours share a replica, as many as the option `devices` says.
  explicit Operators(const ConfigNode& options);
  /// The body `operators`.
  Operators(const ConfigNode& options, const AroundBody& around);
  TrainingStep compile(const StrategyContext& context) const override;
  /// Replicas have equal shares of the batch.
  std::int64_t batch_divisor(std::int64_t workers) const override { return teams_.replicas(workers); }
  bool holds_its_trace() const override { return false; }
  static EntryInfo info();
  static EntryInfo body_info() { return epocast::body_info(info(), "operators", {"devices"}); }

 private:
  Operators(const ConfigNode& options, ReplicaTeams teams);
  StepNodes nodes_of(const StrategyContext& context, std::int64_t batch) const;

  ConfigNode options_;
  ReplicaTeams teams_;
  const PlacementMethod* method_;  ///< null: the best of all
  bool by_pass_;
  ParDnnOptions pardnn_;
  PlacementMachine links_;  ///< how a placement sees them
};

}  // namespace epocast
