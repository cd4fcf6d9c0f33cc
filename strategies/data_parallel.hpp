#pragma once
// Synchronous data parallelism: every worker trains a replica on its share of the batch, and gradients are summed over
// all of them by all-reduce (strategies/synchronisation/all_reduce.hpp). Gradients may be accumulated over several
// micro-batches. Cores may be set aside for communication. Validation: tests/conformance,
// tests/unit/data_parallel_*test.cpp (timelines by hand).

#include "sim/strategy.hpp"
#include "strategies/communication_cores.hpp"
#include "strategies/synchronisation/all_reduce.hpp"

namespace epocast {

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(const ConfigNode& options);
  /// For strategies that are such settings. Of the options it reads communication_cores only.
  DataParallel(const ConfigNode& options, const AllReduce::Settings& settings);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  ConfigNode options_;
  std::int64_t accumulation_ = 1;
  AllReduce synchronisation_;
  CommunicationCores cores_;
};

}  // namespace epocast
