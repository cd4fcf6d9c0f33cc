#pragma once
// Synchronous data parallelism: every worker trains a replica on its share of the batch; gradients are summed over all
// workers by all-reduce before each update.
//
// Scope: one all-reduce per tensor, per layer, per bucket of gradients in the order in which backward makes them (Li et
// al. 2020, PyTorch DDP; Sergeev and Del Balso 2018, Horovod), or one for the whole network; started as soon as its
// gradients are there, or after the backward pass. A communication queue per worker carries out one operation at a
// time, first ready first served. The next forward pass waits for all updates. Limits: communication takes no compute
// time away; no delay into the next forward pass. Validation: tests/conformance, tests/unit/data_parallel_test.cpp
// (timelines by hand).

#include "sim/strategy.hpp"

namespace epocast {

class DataParallel final : public Strategy {
 public:
  explicit DataParallel(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

  enum class Granularity { tensor, layer, bucket, model };

 private:
  Granularity granularity_;
  Bytes bucket_;
  bool overlap_;
};

}  // namespace epocast
