#include "strategies/register.hpp"

#include "strategies/collective_benchmark.hpp"
#include "strategies/data_parallel.hpp"
#include "strategies/filter_parallel.hpp"
#include "strategies/gossip.hpp"
#include "strategies/hogwild.hpp"
#include "strategies/layerwise_data_parallel.hpp"
#include "strategies/local_sgd.hpp"
#include "strategies/parameter_server.hpp"
#include "strategies/periodic_commit.hpp"
#include "strategies/pipeline.hpp"
#include "strategies/sharded_data_parallel.hpp"
#include "strategies/single.hpp"
#include "strategies/two_chunk_data_parallel.hpp"

namespace epocast {

StrategyRegistry builtin_strategies() {
  StrategyRegistry registry("strategy");
  add_strategy<Single>(registry);
  add_strategy<DataParallel>(registry);
  add_strategy<ShardedDataParallel>(registry);
  add_strategy<LocalSgd>(registry);
  add_strategy<LayerwiseDataParallel>(registry);
  add_strategy<TwoChunkDataParallel>(registry);
  add_strategy<ParameterServer>(registry);
  add_strategy<Pipeline>(registry);
  add_strategy<FilterParallel>(registry);
  for (const CommitRule& rule : commit_rules())
    registry.add(PeriodicCommit::info(rule),
                 [&rule](const ConfigNode& options) { return std::make_unique<PeriodicCommit>(rule, options); });
  add_strategy<Gossip>(registry);
  add_strategy<Hogwild>(registry);
  add_strategy<CollectiveBenchmark>(registry);
  return registry;
}

}  // namespace epocast
