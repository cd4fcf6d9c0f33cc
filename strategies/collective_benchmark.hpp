#pragma once
// Nothing but one collective, over and over: what does it take on this cluster?
//
// Scope: any operation and algorithm of sim/collective.hpp over all workers; needs no model.
// Validation: closed forms (tests/unit/collective_execution_test.cpp).

#include "sim/strategy.hpp"

namespace epocast {

class CollectiveBenchmark final : public Strategy {
 public:
  explicit CollectiveBenchmark(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  bool needs_model() const override { return false; }
  static EntryInfo info();

 private:
  ConfigNode options_;
  CollectiveOp operation_;
  Bytes bytes_;
};

}  // namespace epocast
