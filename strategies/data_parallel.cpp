#include "strategies/data_parallel.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "strategies/step/composition_text.hpp"
#include "strategies/step/single_stage.hpp"

namespace epocast {
namespace {

struct Replicas {
  std::string name, description, synchronisation;
  DataParallel::Extras extras;
};

/// Strategies that say more, or are called otherwise, than their synchronisation.
const std::vector<Replicas>& renamed() {
  static const std::vector<Replicas> all{
      {"single", "one device trains the whole network", "none", {}},
      {"data_parallel", "synchronous data parallelism with all-reduce", "all_reduce", {true, true}},
      {"sharded_data_parallel",
       "data parallelism in which each worker owns a share of optimizer state, gradients and parameters (ZeRO, FSDP)",
       "sharded",
       {.accumulation = true, .cores = true}},
      {"layerwise_data_parallel",
       "data parallelism layer by layer, hidden behind backward and next forward (PCL-DNN, Intel Caffe, Lee's pcnn)",
       "partial_gradients",
       {.cores = true}},
      {"two_chunk_data_parallel",
       "data parallelism with two all-reduces, and replicated gradients of fully connected layers (Lee 2020)",
       "two_chunks",
       {.cores = true}},
      {"local_sgd",
       "workers train by themselves for some steps, then average their parameters by all-reduce",
       "average",
       {}}};
  return all;
}

EntryInfo info_of(const Replicas& strategy, const EntryInfo& synchronisation) {
  EntryInfo info{strategy.name, strategy.description, synchronisation.parameters};
  if (strategy.extras.accumulation)
    info.parameters.push_back({"accumulation", "count", "1 .. batch per worker", "1",
                               "micro-batches whose gradients a worker adds up before they are reduced"});
  if (strategy.extras.cores) info.parameters.push_back(CommunicationCores::parameter());
  return info;
}

}  // namespace

DataParallel::DataParallel(const ConfigNode& options, Extras extras, std::string name,
                           std::unique_ptr<const Synchronisation> synchronisation)
    : options_(options),
      accumulation_(extras.accumulation ? options.get("accumulation", std::int64_t{1}, Range{1, 1e6}) : 1),
      name_(std::move(name)),
      synchronisation_(std::move(synchronisation)),
      cores_(extras.cores ? CommunicationCores(options) : CommunicationCores()) {}

TrainingStep DataParallel::compile(const StrategyContext& context) const {
  if (name_ == "none" && context.workers.size() != 1)
    throw options_.error("strategy 'single' trains on one worker, but the study has " +
                         std::to_string(context.workers.size()) + "; set workers: 1 or choose data_parallel");
  const std::int64_t batch = context.worker_batch();
  if (batch % accumulation_ != 0)
    throw options_.at("accumulation")
        .error("a worker's batch of " + std::to_string(batch) + " cannot be divided into " +
               std::to_string(accumulation_) + " micro-batches; use a divisor of " + std::to_string(batch));
  TrainingStep step = single_stage_step(cores_.slowed(context), static_cast<int>(accumulation_), *synchronisation_);
  step.composition = text_of({.mesh = {{"data", static_cast<int>(context.workers.size())}},
                              .schedule = "1f1b",
                              .micro_batches = static_cast<int>(accumulation_),
                              .bodies = {},
                              .synchronisation = name_});
  return step;
}

void add_data_parallel(StrategyRegistry& registry, const SynchronisationRegistry& synchronisations) {
  std::vector<Replicas> all = renamed();
  for (const EntryInfo& info : synchronisations.infos())
    if (std::ranges::find(all, info.name, &Replicas::synchronisation) == all.end())
      all.push_back({info.name, info.description, info.name, {}});
  const auto shared = std::make_shared<const SynchronisationRegistry>(synchronisations);
  for (const Replicas& strategy : all)
    registry.add(info_of(strategy, *shared->find(strategy.synchronisation)),
                 [strategy, shared](const ConfigNode& options) {
                   return std::make_unique<DataParallel>(options, strategy.extras, strategy.synchronisation,
                                                         shared->make(strategy.synchronisation, options, options));
                 });
}

}  // namespace epocast
