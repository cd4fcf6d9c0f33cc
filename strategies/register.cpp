#include "strategies/register.hpp"

#include <memory>
#include <utility>

#include "strategies/bodies/context.hpp"
#include "strategies/bodies/experts.hpp"
#include "strategies/bodies/filters.hpp"
#include "strategies/bodies/tensor.hpp"
#include "strategies/collective_benchmark.hpp"
#include "strategies/composition.hpp"
#include "strategies/data_parallel.hpp"
#include "strategies/filter_parallel.hpp"
#include "strategies/layerwise.hpp"
#include "strategies/operators.hpp"
#include "strategies/presets.hpp"
#include "strategies/synchronisation/all_reduce.hpp"
#include "strategies/synchronisation/average.hpp"
#include "strategies/synchronisation/commit.hpp"
#include "strategies/synchronisation/gossip.hpp"
#include "strategies/synchronisation/hogwild.hpp"
#include "strategies/synchronisation/none.hpp"
#include "strategies/synchronisation/parameter_server.hpp"
#include "strategies/synchronisation/partial_gradients.hpp"
#include "strategies/synchronisation/sharded.hpp"
#include "strategies/synchronisation/two_chunks.hpp"

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
  add_synchronisation<AllReduce>(registry);
  add_synchronisation<Sharded>(registry);
  add_synchronisation<PartialGradients>(registry);
  add_synchronisation<TwoChunks>(registry);
  add_synchronisation<Average>(registry);
  add_synchronisation<Gossip>(registry);
  add_synchronisation<Hogwild>(registry);
  add_synchronisation<None>(registry);
  add_synchronisation<ParameterServer>(registry);
  for (const CommitRule& rule : commit_rules())
    registry.add(Commit::info(rule),
                 [&rule](const ConfigNode& options) { return std::make_unique<Commit>(rule, options); });
  return registry;
}

StrategyRegistry builtin_strategies(const BodyRegistry& bodies, const SynchronisationRegistry& synchronisations) {
  StrategyRegistry registry("strategy");
  add_data_parallel(registry, synchronisations);
  add_strategy<Layerwise>(registry);
  add_strategy<Operators>(registry);
  registry.add(Composition::pipeline_info(), Composition::pipeline);
  add_strategy<FilterParallel>(registry);
  add_strategy<CollectiveBenchmark>(registry);
  const auto parts = std::make_shared<const std::pair<BodyRegistry, SynchronisationRegistry>>(bodies, synchronisations);
  registry.add(Composition::info(), [parts](const ConfigNode& options) {
    return Composition::compose(options, parts->first, parts->second);
  });
  add_presets(registry);
  return registry;
}

}  // namespace epocast
