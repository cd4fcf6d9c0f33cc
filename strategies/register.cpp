#include "strategies/register.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strategies/bodies/context.hpp"
#include "strategies/bodies/experts.hpp"
#include "strategies/bodies/filters.hpp"
#include "strategies/bodies/mpmd_body.hpp"
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

/// The body that a strategy is in a composition.
template <class Step>
void add_step(BodyRegistry& registry) {
  registry.add(Step::body_info(),
               [](const ConfigNode& options) { return std::make_unique<BodyOfStep<Step>>(options); });
}

}  // namespace

BodyRegistry builtin_bodies() {
  BodyRegistry registry("body");
  add_part<TensorBody>(registry);
  add_part<ContextBody>(registry);
  add_part<ExpertBody>(registry);
  EntryInfo filters = FilterBody::info();
  for (ParameterInfo& option : FilterParallel::body_info().parameters) filters.parameters.push_back(std::move(option));
  registry.add(std::move(filters), [](const ConfigNode& options) -> std::unique_ptr<Body> {
    if (FilterParallel::is_partition(options)) return std::make_unique<BodyOfStep<FilterParallel>>(options);
    return std::make_unique<FilterBody>(options);
  });
  add_step<Layerwise>(registry);
  add_step<Operators>(registry);
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

std::string strategy_of_body(const ConfigNode& strategy) {
  if (!strategy.is_map() || !strategy.has("body")) return "";
  const ConfigNode body = strategy.at("body");
  for (const ConfigNode& one : body.is_list() ? body.items() : std::vector<ConfigNode>{body}) {
    if (one.is_list() || (one.is_map() && !one.has("name"))) continue;
    const ConfigNode name = one.is_map() ? one.at("name") : one;
    if (!name.is_scalar()) continue;
    const std::string word = name.as_string();
    if (word == "layerwise" || word == "operators") return word;
    if (word == "filters" && one.is_map() && FilterParallel::is_partition(one)) return "filter_parallel";
  }
  return "";
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
