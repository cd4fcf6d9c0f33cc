#pragma once
// Hogwild!: replicas in one node update parameters in the memory that they share, without locks and without messages.
//
// Scope: Niu et al. 2011. Workers read the parameters where they are; after its backward pass each writes its update,
// which takes it as long as if it were alone. If the memory is said to have less bandwidth than all workers together,
// it serves one update after the other, at the throughput that updates at the same time would share; a worker that is
// slow or stands still does not keep it. Who overwrites whom is not modelled; staleness counts the updates that others
// completed between a worker's first read and the end of its own update. Limits: dense updates (the paper's sparse ones
// touch little memory); computing takes no bandwidth from updates; a stage's devices are all in one node. Validation:
// tests/conformance, tests/unit/hogwild_test.cpp.

#include <optional>

#include "strategies/step/synchronisation.hpp"

namespace epocast {

class Hogwild final : public Synchronisation {
 public:
  explicit Hogwild(const ConfigNode& options);
  std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const override;
  TrainingRound round(int /*replicas*/) const override {
    return {.one_version = true, .data_only = true, .own_versions = true};
  }
  static EntryInfo info();

 private:
  ConfigNode options_;
  std::optional<BytesPerSecond> bandwidth_;
};

}  // namespace epocast
