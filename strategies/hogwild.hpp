#pragma once
// Hogwild!: workers of one node update parameters in the memory that they share, without locks and without messages.
//
// Scope: Niu et al. 2011. Workers read the parameters where they are; after its backward pass each writes its update,
// which is bound by the memory's bandwidth: the memory serves one update after the other, at the throughput that
// updates at the same time would share. Who overwrites whom is not modelled; staleness counts the updates that others
// completed between a worker's first read and the end of its own update. Limits: dense updates (the paper's sparse ones
// touch little memory); computing takes no bandwidth from updates. Validation: tests/conformance,
// tests/unit/hogwild_test.cpp.

#include <optional>

#include "sim/strategy.hpp"

namespace epocast {

class Hogwild final : public Strategy {
 public:
  explicit Hogwild(const ConfigNode& options);
  TrainingStep compile(const StrategyContext& context) const override;
  static EntryInfo info();

 private:
  BytesPerSecond bandwidth(const StrategyContext& context) const;

  ConfigNode options_;
  std::optional<BytesPerSecond> bandwidth_;
};

}  // namespace epocast
