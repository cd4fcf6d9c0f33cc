#include "strategies/sharded_data_parallel.hpp"

#include "strategies/step/single_stage.hpp"

namespace epocast {

EntryInfo ShardedDataParallel::info() {
  EntryInfo info{"sharded_data_parallel",
                 "data parallelism in which each worker owns a share of optimizer state, gradients and parameters "
                 "(ZeRO, FSDP)",
                 Sharded::parameters()};
  info.parameters.push_back(CommunicationCores::parameter());
  return info;
}

TrainingStep ShardedDataParallel::compile(const StrategyContext& context) const {
  return single_stage_step(cores_.slowed(context), 1, synchronisation_);
}

}  // namespace epocast
