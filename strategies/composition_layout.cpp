// Where a composition puts which layers: how many replicas and micro-batches, where stages are cut, on which devices.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strategies/composition.hpp"
#include "strategies/partitioners/contiguous_split.hpp"

namespace epocast {
namespace {

constexpr int kStagesToTry = 8;  // where replicas are chosen

/// Divisors of n nearest to `wanted`, below and above: "4 or 8".
std::string nearest_divisors(std::int64_t n, std::int64_t wanted) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t d = std::min(wanted, n); d >= 1 && below == 0; --d)
    if (n % d == 0) below = d;
  for (std::int64_t d = wanted + 1; d <= n && above == 0; ++d)
    if (n % d == 0) above = d;
  return above == 0 ? std::to_string(below) : fmt::format("{} or {}", below, above);
}

/// Multiples of n nearest to `wanted`, below and above.
std::string nearest_multiples(std::int64_t wanted, std::int64_t n) {
  const std::int64_t below = wanted / n * n;
  return below == 0 ? std::to_string(n) : fmt::format("{} or {}", below, below + n);
}

int sum(const std::vector<int>& values) { return std::accumulate(values.begin(), values.end(), 0); }

/// Of the device that has least of it for training.
Bytes usable_memory(const StrategyContext& context) {
  Bytes least(std::numeric_limits<double>::infinity());
  for (const DeviceId example : context.kinds->examples()) least = std::min(least, context.device(example).memory);
  return least * (1 - context.memory_reserve_share) - context.memory_reserve;
}

}  // namespace

std::vector<int> Composition::replicas_on(std::size_t workers) const {
  if (mesh_) {
    const Mesh mesh = mesh_->on(workers);
    return std::vector<int>(static_cast<std::size_t>(mesh.extent("pipeline")), mesh.shares());
  }
  const int have = static_cast<int>(workers);
  if (!replicas_.empty()) {
    if (const int need = sum(replicas_); need != have)
      throw options_.at("replicas")
          .error(fmt::format("{} replicas need {} workers, but the study has {}; set workers to {}",
                             fmt::join(replicas_, " + "), need, have, need));
    return replicas_;
  }
  const int stages = stages_.value_or(have);
  if (stages > have)
    throw place("stages").error(
        fmt::format("{} stages need {} workers, but the study has {}; set workers to a multiple of {}", stages, stages,
                    have, stages));
  if (have % stages != 0)
    throw place("stages").error(fmt::format(
        "{} workers do not divide into pipelines of {} stages; set stages to {}, or workers to {} or {}", have, stages,
        nearest_divisors(have, stages), have / stages * stages, (have / stages + 1) * stages));
  return std::vector<int>(static_cast<std::size_t>(stages), have / stages);
}

std::int64_t Composition::batch_divisor(std::int64_t workers) const {
  // Of unequal replicas, compile() says which shares they need.
  if (choose_replicas_ || !replicas_.empty()) return 1;
  return replicas_on(static_cast<std::size_t>(workers)).front();
}

int Composition::micro_batches_of(std::int64_t batch, int stages, int shares) const {
  const std::int64_t shared = batch / shares;
  if (batch % shares != 0)
    throw place("replicas")
        .error(fmt::format("a batch of {} samples does not divide into {} equal shares; set batch.global to {}", batch,
                           shares, nearest_multiples(batch, shares)));
  if (takes_whole_batches(schedule_)) return 1;
  const bool in_groups = schedule_ == PipelineSchedule::interleaved;
  int micro_batches = micro_batches_.value_or(mesh_ && stages == 1 ? 1 : 0);
  for (int per_stage = 4; micro_batches == 0 && per_stage >= 1; --per_stage)
    if (shared % (static_cast<std::int64_t>(per_stage) * stages) == 0) micro_batches = per_stage * stages;
  // There always are some, down to one: the batch is a multiple of the shares.
  for (int some = 4 * stages; micro_batches == 0; --some)
    if (shared % some == 0) micro_batches = some;
  const ConfigNode where = place("micro_batches");
  if (in_groups && micro_batches < stages)
    throw where.error(fmt::format("{} micro-batches are too few to interleave {} stages; use a multiple of {}",
                                  micro_batches, stages, stages));
  if (in_groups && micro_batches % stages != 0)
    throw where.error(fmt::format(
        "an interleaved schedule of {} stages needs a multiple of {} micro-batches, not {}; use {} or {}", stages,
        stages, micro_batches, micro_batches / stages * stages, (micro_batches / stages + 1) * stages));
  if (schedule_ == PipelineSchedule::two_bw && micro_batches < stages)
    throw where.error(fmt::format(
        "2bw has two versions of the weights, which are enough from {} micro-batches (one per stage) on, not for {}",
        stages, micro_batches));
  if (shared % micro_batches != 0)
    throw where.error(fmt::format("a replica's batch of {} samples does not divide into {} micro-batches; use {}",
                                  shared, micro_batches, nearest_divisors(shared, micro_batches)));
  return micro_batches;
}

std::vector<std::size_t> Composition::named_boundaries(const WorkloadTrace& trace, int chunks) const {
  if (first_layers_.size() != static_cast<std::size_t>(chunks) - 1)
    throw options_.at("first_layers")
        .error(fmt::format("{} stages begin at {} layers besides the first, not at {}", chunks, chunks - 1,
                           first_layers_.size()));
  std::vector<std::string> names;
  for (const LayerTrace& layer : trace.layers) names.push_back(layer.name);
  std::vector<std::size_t> boundaries{0};
  for (const ConfigNode& node : first_layers_) {
    const std::string name = node.as_string();
    const auto found = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (found == names.size()) {
      const std::string nearest = nearest_name(name, names);
      throw node.error(fmt::format(
          "{} has no layer '{}'{}", trace.model, name,
          nearest.empty() ? "; see the column layer of epocast trace" : fmt::format(" (did you mean '{}'?)", nearest)));
    }
    if (found <= boundaries.back())
      throw node.error(fmt::format("layer '{}' does not come after '{}', where the stage before begins", name,
                                   names[boundaries.back()]));
    boundaries.push_back(found);
  }
  boundaries.push_back(trace.layers.size());
  return boundaries;
}

SplitLimits Composition::limits(const StrategyContext& context) const {
  SplitLimits limits{.bandwidth = split_bandwidth_, .memory = {}, .optimizer = context.optimizer, .overlap = overlap_};
  if (split_ == SplitRule::time) limits.memory = usable_memory(context);
  return limits;
}

/// No framework that trains transformers cuts their layers into stages but as whole blocks; unequal devices need it.
bool Composition::splits_blocks(const WorkloadTrace& passes, int chunks) const {
  if (options_.has("split")) return split_ == SplitRule::blocks;
  if (!mesh_ || options_.has("split_bandwidth") || !passes.compute_time().is_same()) return false;
  // More stages than blocks are a mistake; chunks of them may be smaller.
  const auto copies = static_cast<int>(block_copies(passes).size());
  return copies >= chunks || (copies > 0 && chunks_per_stage_ == 1);
}

StageLayout Composition::given_layout(const StrategyContext& context, MicroBatch& micro_batch, const StepPlan& plan,
                                      const std::vector<int>& replicas) const {
  const WorkloadTrace& trace = micro_batch.share(replicas.front());
  const int chunks = static_cast<int>(plan.chunks.size());
  if (options_.has("first_layers")) return {replicas, named_boundaries(trace, chunks), {}};
  try {
    check_enough_layers(trace, chunks);
    if (splits_blocks(micro_batch.passes(replicas.front()), chunks))
      return {replicas, divide_blocks_evenly(trace, chunks), {}};
    if (split_ == SplitRule::even) return {replicas, divide_layers_evenly(trace, chunks), {}};
    if (split_ == SplitRule::bisection) return {replicas, halve_layers(trace, chunks), {}};
    return split_by_time(micro_batch, plan, replicas, sum(replicas), limits(context));
  } catch (const SplitError& problem) {
    const char* key = chunks_per_stage_ > 1 && options_.has("virtual_stages") ? "virtual_stages" : "stages";
    const bool of_mesh = mesh_ && !options_.has(key) && mesh_->place().has("pipeline");
    throw(of_mesh ? mesh_->place().at("pipeline") : place(!replicas_.empty() && !options_.has(key) ? "replicas" : key))
        .error(fmt::format(
            "{} stages{} are too many: {}{}", chunks,
            chunks_per_stage_ > 1 ? fmt::format(" ({} of them on each device)", chunks_per_stage_) : "", problem.what(),
            mesh_ && !options_.has("split") ? "; use fewer, or schedule.split: time, which divides blocks" : ""));
  }
}

std::vector<int> Composition::micro_batches_to_try(std::int64_t batch, int stages) const {
  // Plain data parallelism has no use for several.
  if (takes_whole_batches(schedule_) || (stages == 1 && !micro_batches_)) return {1};
  std::vector<int> out;
  for (int per_stage = 4; per_stage >= 1 && !micro_batches_; --per_stage)
    if (batch % (static_cast<std::int64_t>(per_stage) * stages) == 0) out.push_back(per_stage * stages);
  if (out.empty()) out.push_back(micro_batches_of(batch, stages, 1));
  return out;
}

/// The best of those with one stage, with two, and so on: few are enough where stages have replicas.
Composition::Choice Composition::best_layout(const StrategyContext& context) const {
  const int workers = static_cast<int>(context.workers.size());
  if (stages_ && *stages_ > workers)
    throw place("stages").error(
        fmt::format("{} stages need {} workers, but the study has {}", *stages_, *stages_, workers));
  int most = stages_.value_or(std::min(workers, kStagesToTry));
  if (schedule_ == PipelineSchedule::two_bw && !stages_) most = std::min(most, micro_batches_.value_or(most));
  std::optional<Choice> best;
  std::string problem;
  for (int stages = stages_.value_or(1); stages <= most; ++stages)
    for (const int micro_batches : micro_batches_to_try(context.global_batch, stages)) {
      const std::int64_t samples = context.global_batch / micro_batches;
      Choice choice{plan_for(stages, micro_batches), {}, {}};
      choice.micro_batch = micro_batch_of(context, choice.plan);
      try {
        check_enough_layers(choice.micro_batch->share(1), stages);
        choice.layout = split_and_replicate(*choice.micro_batch, choice.plan, workers, limits(context));
      } catch (const SplitError& error) {
        problem = fmt::format("for {} stages and micro-batches of {} samples, {}", stages, samples, error.what());
        continue;
      }
      if (!best || choice.layout.better_than(best->layout)) best = std::move(choice);
    }
  if (!best) throw place("replicas").error("there is nothing to choose: " + problem);
  return std::move(*best);
}

std::vector<StageRanks> Composition::place_stages(const std::vector<DeviceId>& workers,
                                                  const std::vector<int>& replicas) const {
  if (mesh_) return mesh_->on(workers.size()).stages(workers);
  std::vector<StageRanks> stages(replicas.size());
  for (std::size_t s = 0; s < replicas.size(); ++s)
    stages[s].replicas = {.stride = 1, .extent = static_cast<std::uint32_t>(replicas[s])};
  std::size_t next = 0;
  if (placement_ == Placement::stage_major) {
    for (std::size_t s = 0; s < replicas.size(); ++s)
      for (int r = 0; r < replicas[s]; ++r) stages[s].devices.push_back(workers[next++]);
    return stages;
  }
  for (int r = 0; next < workers.size(); ++r)
    for (std::size_t s = 0; s < replicas.size(); ++s)
      if (r < replicas[s]) stages[s].devices.push_back(workers[next++]);
  return stages;
}

}  // namespace epocast
