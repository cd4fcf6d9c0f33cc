#pragma once
// One device trains the whole network: the baseline of every speedup.
//
// Scope: forward, backward and update of each layer, one after the other.
// Validation: the iteration time is the sum of the trace's times (tests/conformance).

#include "sim/strategy.hpp"

namespace epocast {

class Single final : public Strategy {
 public:
  explicit Single(const ConfigNode& options) : options_(options) {}
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  ConfigNode options_;
};

}  // namespace epocast
