#include "strategies/register.hpp"

#include "strategies/bodies/context.hpp"
#include "strategies/bodies/experts.hpp"
#include "strategies/bodies/filters.hpp"
#include "strategies/bodies/tensor.hpp"
#include "strategies/collective_benchmark.hpp"
#include "strategies/composition.hpp"
#include "strategies/data_parallel.hpp"
#include "strategies/filter_parallel.hpp"
#include "strategies/gossip.hpp"
#include "strategies/hogwild.hpp"
#include "strategies/layerwise.hpp"
#include "strategies/layerwise_data_parallel.hpp"
#include "strategies/local_sgd.hpp"
#include "strategies/parameter_server.hpp"
#include "strategies/periodic_commit.hpp"
#include "strategies/presets.hpp"
#include "strategies/sharded_data_parallel.hpp"
#include "strategies/single.hpp"
#include "strategies/synchronisation/all_reduce.hpp"
#include "strategies/synchronisation/sharded.hpp"
#include "strategies/two_chunk_data_parallel.hpp"

namespace epocast {
namespace {

template <class Part, class Base>
void add_part(Registry<Base>& registry) {
  registry.add(Part::info(), [](const ConfigNode& options) { return std::make_unique<Part>(options); });
}

}  // namespace

BodyRegistry builtin_bodies() {
  BodyRegistry registry("body");
  add_part<TensorBody>(registry);
  add_part<ContextBody>(registry);
  add_part<ExpertBody>(registry);
  add_part<FilterBody>(registry);
  return registry;
}

SynchronisationRegistry builtin_synchronisations() {
  SynchronisationRegistry registry("synchronisation");
  registry.add(
      {"all_reduce", "gradients are summed over all replicas, each of which updates all", AllReduce::parameters()},
      [](const ConfigNode& options) { return std::make_unique<AllReduce>(options); });
  registry.add({"sharded", "each replica owns a share of what it trains (ZeRO, FSDP)", Sharded::parameters()},
               [](const ConfigNode& options) { return std::make_unique<Sharded>(options); });
  return registry;
}

StrategyRegistry builtin_strategies() {
  StrategyRegistry registry("strategy");
  add_strategy<Single>(registry);
  add_strategy<DataParallel>(registry);
  add_strategy<ShardedDataParallel>(registry);
  add_strategy<LocalSgd>(registry);
  add_strategy<LayerwiseDataParallel>(registry);
  add_strategy<Layerwise>(registry);
  add_strategy<TwoChunkDataParallel>(registry);
  add_strategy<ParameterServer>(registry);
  registry.add(Composition::pipeline_info(), Composition::pipeline);
  add_strategy<FilterParallel>(registry);
  for (const CommitRule& rule : commit_rules())
    registry.add(PeriodicCommit::info(rule),
                 [&rule](const ConfigNode& options) { return std::make_unique<PeriodicCommit>(rule, options); });
  add_strategy<Gossip>(registry);
  add_strategy<Hogwild>(registry);
  add_strategy<CollectiveBenchmark>(registry);
  registry.add(Composition::info(), [](const ConfigNode& options) {
    return Composition::compose(options, builtin_bodies(), builtin_synchronisations());
  });
  add_presets(registry);
  return registry;
}

}  // namespace epocast
