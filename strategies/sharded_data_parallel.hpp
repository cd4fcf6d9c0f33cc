#pragma once
// Sharded data parallelism: as data parallelism, but each of P workers owns 1/P of what it trains.
//
// Scope: ZeRO (Rajbhandari et al. 2020) and FSDP (Zhao et al. 2023). Stage 1 shards the optimizer's state, stage 2 the
// gradients too, stage 3 the parameters too. Gradients are reduce-scattered unit by unit as the backward pass makes
// them, each worker updates its share, and updated parameters are all-gathered: once a step behind the next forward
// pass (stages 1 and 2, as many bytes as an all-reduce), or, in stage 3, before a unit's forward pass and again before
// its backward pass (half as many again), at most `prefetch` units ahead. A unit is a run of layers.
// Limits: one worker is the degenerate case, without shards and without communication. No offloading to the host.
// Validation: tests/conformance, tests/unit/sharded_data_parallel_test.cpp (timelines by hand, bytes by formula).

#include "sim/strategy.hpp"
#include "strategies/communication_cores.hpp"

namespace epocast {

class ShardedDataParallel final : public Strategy {
 public:
  explicit ShardedDataParallel(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  class Builder;

  std::int64_t stage_;
  Bytes unit_;
  std::int64_t prefetch_;
  bool reshard_;
  CommunicationCores cores_;
};

}  // namespace epocast
