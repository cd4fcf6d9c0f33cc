#include "strategies/collective_benchmark.hpp"

namespace epocast {
namespace {

CollectiveOp read_operation(const ConfigNode& options) {
  if (!options.has("operation")) return CollectiveOp::all_reduce;
  try {
    return parse_collective_op(options.at("operation").as_string());
  } catch (const std::invalid_argument& problem) {
    throw options.at("operation").error(problem.what());
  }
}

}  // namespace

EntryInfo CollectiveBenchmark::info() {
  return {"collective_benchmark",
          "one collective over all workers, over and over; needs no model",
          {{"operation", "",
            "all_reduce | reduce_scatter | all_gather | all_to_all | broadcast | reduce | gather | scatter",
            "all_reduce", "what to do; the algorithm is the study's collective.algorithm"},
           {"bytes", "bytes", "> 0", "required", "vector size, as MPI and NCCL count it"}}};
}

CollectiveBenchmark::CollectiveBenchmark(const ConfigNode& options)
    : options_(options), operation_(read_operation(options)), bytes_(options.at("bytes").as_bytes(Range{1, 1e15})) {}

TrainingStep CollectiveBenchmark::compile(const StrategyContext& context) const {
  if (context.workers.size() < 2) throw options_.error("a collective needs at least 2 workers");
  if (!supports(context.collective.algorithm, operation_))
    throw options_.error(std::string("algorithm ") + to_string(context.collective.algorithm) + " cannot do " +
                         to_string(operation_) + "; set collective.algorithm, for instance to " +
                         to_string(default_algorithm(operation_)));
  TrainingStep step;
  const GroupId workers = step.graph.add_group("workers", context.workers);
  const QueueId queue =
      step.graph.add_queue("communication", workers, QueueRole::communication, Discipline::program_order);
  step.graph.collective(
      queue,
      {operation_, context.collective.algorithm, context.collective.level, workers, bytes_, context.collective.gamma},
      {to_string(operation_), ""});
  return step;
}

}  // namespace epocast
