#pragma once
// Every worker trains a replica of all layers on its share of the batch, and a synchronisation makes them agree. Each
// synchronisation is such a strategy, of its own name or a usual one: single (none), data_parallel (all_reduce),
// sharded_data_parallel (sharded), local_sgd (average). The same steps are compositions of a mesh with a data axis
// only. Gradients may be accumulated over several micro-batches, and cores set aside for communication. Validation:
// tests/conformance; timelines by hand in tests/unit.

#include <memory>

#include "sim/strategy.hpp"
#include "strategies/step/communication_cores.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

class DataParallel final : public Strategy {
 public:
  /// What is said beside the synchronisation's own options.
  struct Extras {
    bool accumulation = false, cores = false;
  };

  /// `name`: of the synchronisation.
  DataParallel(const ConfigNode& options, Extras extras, std::string name,
               std::unique_ptr<const Synchronisation> synchronisation);
  TrainingStep compile(const StrategyContext& context) const override;

 private:
  ConfigNode options_;
  std::int64_t accumulation_ = 1;
  std::string name_;
  std::unique_ptr<const Synchronisation> synchronisation_;
  CommunicationCores cores_;
};

/// One strategy for each synchronisation, with its options and the extras.
void add_data_parallel(StrategyRegistry& registry, const SynchronisationRegistry& synchronisations);

}  // namespace epocast
