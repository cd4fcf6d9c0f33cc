#pragma once
// Local SGD: every worker takes `period` steps by itself, then all average their parameters.
//
// Scope: Stich 2019, "Local SGD converges fast and communicates little"; McMahan et al. 2017. Parameters are averaged
// by all-reduce after the last local step's updates, in buckets. With overlap (Shen et al. 2019, CoCoD-SGD; Wang et al.
// 2020, Overlap-Local-SGD) a round's average travels during the next round and is mixed in at its end. Period 1 without
// overlap moves the bytes of synchronous data parallelism. What it does to the number of epochs is not modelled.
// One iteration of the graph is one round. Validation: tests/conformance, tests/unit/local_sgd_test.cpp.

#include "sim/strategy.hpp"
#include "strategies/gradient_buckets.hpp"

namespace epocast {

class LocalSgd final : public Strategy {
 public:
  explicit LocalSgd(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  std::int64_t period_;
  Bytes bucket_;
  bool overlap_;
};

}  // namespace epocast
