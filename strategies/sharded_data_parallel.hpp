#pragma once
// Data parallelism in which each worker owns a share of optimizer state, gradients and parameters
// (strategies/synchronisation/sharded.hpp). Cores may be set aside for communication. Validation:
// tests/unit/sharded_data_parallel_test.cpp (timelines and bytes by hand), tests/conformance.

#include "sim/strategy.hpp"
#include "strategies/communication_cores.hpp"
#include "strategies/synchronisation/sharded.hpp"

namespace epocast {

class ShardedDataParallel final : public Strategy {
 public:
  explicit ShardedDataParallel(const ConfigNode& options) : synchronisation_(options), cores_(options) {}
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  Sharded synchronisation_;
  CommunicationCores cores_;
};

}  // namespace epocast
