#include "strategies/data_parallel.hpp"

#include "strategies/step/single_stage.hpp"

namespace epocast {

EntryInfo DataParallel::info() {
  EntryInfo info{"data_parallel", "synchronous data parallelism with all-reduce", AllReduce::parameters()};
  info.parameters.push_back({"accumulation", "count", "1 .. batch per worker", "1",
                             "micro-batches whose gradients a worker adds up before they are reduced"});
  info.parameters.push_back(CommunicationCores::parameter());
  return info;
}

DataParallel::DataParallel(const ConfigNode& options)
    : options_(options),
      accumulation_(options.get("accumulation", std::int64_t{1}, Range{1, 1e6})),
      synchronisation_(options),
      cores_(options) {}

DataParallel::DataParallel(const ConfigNode& options, const AllReduce::Settings& settings)
    : options_(options), synchronisation_(settings), cores_(options) {}

TrainingStep DataParallel::compile(const StrategyContext& context) const {
  const std::int64_t batch = context.worker_batch();
  if (batch % accumulation_ != 0)
    throw options_.at("accumulation")
        .error("a worker's batch of " + std::to_string(batch) + " cannot be divided into " +
               std::to_string(accumulation_) + " micro-batches; use a divisor of " + std::to_string(batch));
  return single_stage_step(cores_.slowed(context), static_cast<int>(accumulation_), synchronisation_);
}

}  // namespace epocast
