#include "strategies/composition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "sim/recompute.hpp"
#include "strategies/partitioners/contiguous_split.hpp"
#include "strategies/step/composition_text.hpp"
#include "strategies/step/options.hpp"
#include "strategies/step/part.hpp"
#include "strategies/step/stage_memory.hpp"
#include "strategies/synchronisation/all_reduce.hpp"

namespace epocast {
namespace {

constexpr double kMost = 1e5;    // stages, micro-batches
constexpr int kStagesToTry = 8;  // where replicas are chosen

std::optional<int> count(const ConfigNode& options, const char* key) {
  if (!options.has(key)) return std::nullopt;
  return static_cast<int>(options.at(key).as_int({1, kMost}));
}

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

const std::vector<std::pair<std::string, PipelineSchedule>>& schedules() {
  static const std::vector<std::pair<std::string, PipelineSchedule>> all{
      {"naive", PipelineSchedule::naive},         {"gpipe", PipelineSchedule::gpipe},
      {"1f1b", PipelineSchedule::one_f_one_b},    {"interleaved", PipelineSchedule::interleaved},
      {"zb_h1", PipelineSchedule::zb_h1},         {"zb_h2", PipelineSchedule::zb_h2},
      {"pipedream", PipelineSchedule::pipedream}, {"2bw", PipelineSchedule::two_bw},
      {"threaded", PipelineSchedule::threaded}};
  return all;
}

/// Stages are computed, and so updated, as a whole.
void refuse_piecewise_updates(const ConfigNode& options) {
  if (options.has("update"))
    throw options.at("update").error(
        "a stage of a pipeline is updated as a whole when all its gradients are there; leave update out");
}

int sum(const std::vector<int>& values) { return std::accumulate(values.begin(), values.end(), 0); }

int common_multiple(const std::vector<int>& values) {
  std::int64_t out = 1;
  for (const int value : values) out = std::min(std::lcm(out, static_cast<std::int64_t>(value)), std::int64_t{1} << 30);
  return static_cast<int>(out);
}

/// Of the device that has least of it for training.
Bytes usable_memory(const StrategyContext& context) {
  Bytes least(std::numeric_limits<double>::infinity());
  for (const DeviceId example : context.kinds->examples()) least = std::min(least, context.device(example).memory);
  return least * (1 - context.memory_reserve_share) - context.memory_reserve;
}

}  // namespace

Composition::Composition(const ScheduleOptions& schedule, std::optional<Mesh> mesh, Bodies bodies,
                         std::shared_ptr<const Synchronisation> synchronisation)
    : mesh_(std::move(mesh)),
      bodies_(std::move(bodies)),
      synchronisation_(std::move(synchronisation)),
      synchronisation_place_(schedule.options),
      options_(schedule.options),
      schedule_(choose(schedule.named_in, schedule.name_key, schedules(), PipelineSchedule::one_f_one_b)),
      stages_(count(options_, "stages")),
      micro_batches_(count(options_, "micro_batches")),
      in_flight_(count(options_, "in_flight")),
      chunks_per_stage_(schedule_ == PipelineSchedule::interleaved
                            ? static_cast<int>(options_.get("virtual_stages", 2, Range{2, 1000}))
                            : 1),
      split_(choose(options_, "split",
                    {{"time", SplitRule::time},
                     {"time_only", SplitRule::time_only},
                     {"bisection", SplitRule::bisection},
                     {"even", SplitRule::even},
                     {"blocks", SplitRule::blocks}},
                    SplitRule::time)),
      split_bandwidth_(options_.has("split_bandwidth") ? options_.at("split_bandwidth").as_bytes_per_second({1, 1e300})
                                                       : BytesPerSecond(1e300)),
      gradients_(choose(options_, "gradients",
                        {{"collocated", GradientPlace::collocated}, {"one_processor", GradientPlace::one_processor}},
                        GradientPlace::collocated)),
      recompute_(options_.get("recompute", false)),
      copy_(seconds_per_byte(options_, "copy_rate")),
      blocking_(options_.get("blocking_messages", false)),
      overlap_(options_.get("overlap", true)),
      scatter_messages_(options_.get("scatter_messages", true)),
      placement_(choose(options_, "placement",
                        {{"stage_major", Placement::stage_major}, {"replica_major", Placement::replica_major}},
                        Placement::stage_major)) {
  if (options_.has("replicas")) read_replicas(options_.at("replicas"));
  if (options_.has("first_layers")) first_layers_ = options_.at("first_layers").items();
  check_options();
}

std::unique_ptr<Strategy> Composition::pipeline(const ConfigNode& options) {
  refuse_piecewise_updates(options);
  return std::unique_ptr<Strategy>(
      new Composition({options, "schedule", options}, std::nullopt, {}, std::make_shared<AllReduce>(options)));
}

/// One for every axis along which layers are divided: those that are named, and for other axes those without options.
Composition::Bodies Composition::read_bodies(const ConfigNode& options, const Mesh& mesh,
                                             const BodyRegistry& registry) {
  std::vector<std::pair<std::string, const char*>> axes{
      {"context", "context"}, {"expert", "experts"}, {"tensor", "tensor"}};  // and what divides along them
  std::vector<Part> parts;
  if (options.has("body") && options.at("body").is_list())
    for (const ConfigNode& item : options.at("body").items()) parts.push_back(read_part_of(item));
  else if (options.has("body"))
    parts.push_back(read_part(options, "body", "whole"));
  std::map<std::string, std::pair<std::string, std::shared_ptr<const Body>>> along;
  for (const Part& part : parts) {
    if (part.name == "whole") {
      for (const auto& [axis, body] : axes)
        if (mesh.extent(axis) > 1)
          throw mesh.place().at(axis).error(
              fmt::format("a body of whole layers has no use for this axis; use body: {}", body));
      continue;
    }
    std::shared_ptr<const Body> body = registry.make(part.name, part.options, part.place);
    const std::string axis = body->axis();
    if (mesh.extent(axis) < 2)
      throw part.place.error(
          fmt::format("the mesh has no axis '{}' to divide layers over; add it, or use body: whole", axis));
    if (!along.emplace(axis, std::pair(part.name, std::move(body))).second)
      throw part.place.error(fmt::format("something else divides along '{}' already; leave out one of the two", axis));
  }
  Bodies bodies;
  const ConfigNode nothing = ConfigNode::load_text("{}", "body");
  for (const auto& [axis, body] : axes) {
    if (const auto named = along.find(axis); named != along.end())
      bodies.push_back(named->second);
    else if (mesh.extent(axis) > 1)
      bodies.emplace_back(body, registry.make(body, nothing, mesh.place().at(axis)));
  }
  return bodies;
}

std::unique_ptr<Strategy> Composition::compose(const ConfigNode& options, const BodyRegistry& bodies,
                                               const SynchronisationRegistry& synchronisations) {
  const Mesh mesh(options.at("mesh"));
  for (const ConfigNode& node : {options, options.has("synchronisation") ? options.at("synchronisation") : options})
    if (node.is_map() && node.has("accumulation"))
      throw node.at("accumulation")
          .error("micro-batches are accumulated by the schedule; write schedule: {micro_batches: " +
                 node.at("accumulation").flow_text() + "} in the strategy");
  const Part synchronisation = read_part(options, "synchronisation", "all_reduce");
  const Part schedule = read_part(options, "schedule", "1f1b");
  if (mesh.extent("pipeline") > 1) refuse_piecewise_updates(synchronisation.options);
  auto made = std::unique_ptr<Composition>(new Composition(
      {schedule.named_in, schedule.name_key, schedule.options}, mesh, read_bodies(options, mesh, bodies),
      synchronisations.make(synchronisation.name, synchronisation.options, synchronisation.place)));
  made->synchronisation_place_ = synchronisation.place;
  made->synchronisation_name_ = synchronisation.name;
  made->check_synchronisation(schedule.name, synchronisation.name);
  return made;
}

void Composition::read_replicas(const ConfigNode& node) {
  if (node.is_scalar()) {
    if (node.as_string() != "auto") throw node.error("expected a list of counts, one per stage, or auto");
    choose_replicas_ = true;
    return;
  }
  for (const ConfigNode& item : node.items()) replicas_.push_back(static_cast<int>(item.as_int({1, kMost})));
  if (replicas_.empty()) throw node.error("no stages; give each stage's number of replicas");
  if (stages_ && *stages_ != static_cast<int>(replicas_.size()))
    throw options_.at("stages").error(
        fmt::format("{} stages, but replicas of {}; leave out stages", *stages_, replicas_.size()));
}

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

StepPlan Composition::plan_for(int stages, int micro_batches) const {
  StepPlan plan;
  plan.schedule = schedule_;
  plan.chunks.resize(static_cast<std::size_t>(stages * chunks_per_stage_));
  plan.ranks.resize(static_cast<std::size_t>(stages));
  plan.micro_batches = micro_batches;
  plan.in_flight = in_flight_.value_or(stages);
  plan.copy = copy_;
  plan.blocking = blocking_;
  plan.gradients = gradients_;
  return plan;
}

std::unique_ptr<MicroBatch> Composition::micro_batch_of(const StrategyContext& context, std::int64_t samples) const {
  TraceSource source = context.trace;
  if (recompute_)
    source = [this, made = context.trace](std::int64_t batch) {
      WorkloadTrace trace = made(batch);
      if (forgets(trace))
        throw options_.at("recompute")
            .error("memory.recompute already says what is forgotten and computed again; leave out one of the two");
      forget_everything(trace);
      return trace;
    };
  return std::make_unique<MicroBatch>(std::move(source), samples, splits_backward(schedule_));
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
      Choice choice{plan_for(stages, micro_batches), micro_batch_of(context, samples), {}};
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

/// The network as one device has it. None if nothing divides it.
std::optional<DividedModel> Composition::divide(const StrategyContext& context) const {
  if (bodies_.empty()) return std::nullopt;
  if (context.model == nullptr || !context.trace_of)
    throw mesh_->place().error("this needs a network with layers, which can be divided");
  DividedModel divided = DividedModel::whole(*context.model);
  for (const auto& [name, body] : bodies_)
    divided = body->divide(std::move(divided), mesh_->extent(body->axis()), mesh_->place().at(body->axis()));
  return divided;
}

std::string Composition::text(const StepPlan& plan) const {
  CompositionParts parts;
  const auto workers = std::accumulate(plan.ranks.begin(), plan.ranks.end(), std::size_t{0},
                                       [](std::size_t n, const StageRanks& stage) { return n + stage.devices.size(); });
  if (mesh_)
    parts.mesh = mesh_->on(workers).axes();
  else
    parts.mesh = {{"pipeline", plan.stages()}, {"data", static_cast<int>(workers) / plan.stages()}};
  parts.schedule = std::ranges::find(schedules(), schedule_, [](const auto& one) { return one.second; })->first;
  parts.micro_batches = plan.micro_batches;
  for (const auto& [name, body] : bodies_) parts.bodies.push_back(name);
  parts.synchronisation = synchronisation_name_;
  return text_of(parts);
}

/// A layer's exchanges of a micro-batch on one replica.
std::vector<LayerExchanges> Composition::exchanges(const DividedModel& divided, const WorkloadTrace& trace) const {
  std::vector<LayerExchanges> out;
  const auto sized = [&](const std::vector<SampleExchange>& of) {
    std::vector<Exchange> all;
    for (const SampleExchange& one : of) {
      const double value = one.full_precision ? bytes_per_value(Precision::fp32) : bytes_per_value(trace.precision);
      all.push_back({one.name, one.op, Bytes(one.values * static_cast<double>(trace.batch) * value), one.axis});
    }
    return all;
  };
  for (const SampleExchanges& layer : divided.exchanges)
    out.push_back({sized(layer.before_forward), sized(layer.during_forward), sized(layer.after_forward),
                   sized(layer.before_backward), sized(layer.during_backward), sized(layer.beside_backward_data),
                   sized(layer.beside_backward_weights), sized(layer.after_backward)});
  return out;
}

/// What all devices of a team have, each sends a part of; the receivers gather it (Narayanan et al. 2021, section 4.1).
void Composition::scatter_messages(StepPlan& plan, const DividedModel& divided) const {
  const double parts = mesh_->extent("tensor");
  if (parts < 2) return;
  plan.gathers.resize(plan.chunks.size());
  for (std::size_t c = 1; c < plan.chunks.size(); ++c) {
    Chunk &before = plan.chunks[c - 1], &after = plan.chunks[c];
    if (before.stage == after.stage || !divided.shared[after.first - 1]) continue;
    const Exchange gather{"all-gather", CollectiveOp::all_gather, after.received, &StageRanks::tensor};
    plan.gathers[c].forward = plan.gathers[c - 1].backward = gather;
    before.sent = before.sent / parts;
    after.received = after.received / parts;
  }
}

TrainingStep Composition::compile(const StrategyContext& whole) const {
  StrategyContext context = whole;
  if (mesh_) mesh_->on(whole.workers.size());  // throws
  const std::optional<DividedModel> divided = divide(whole);
  if (divided) context.trace = whole.trace_of(divided->part);
  const auto chosen = [&]() -> Choice {
    if (choose_replicas_) return best_layout(context);
    const std::vector<int> replicas = replicas_on(context.workers.size());
    if (gradients_ == GradientPlace::one_processor && sum(replicas) > static_cast<int>(replicas.size()))
      throw options_.at("gradients").error("one processor for all gradients and replicas of stages do not go together");
    const int stages = static_cast<int>(replicas.size());
    const int micro_batches = micro_batches_of(context.global_batch, stages, common_multiple(replicas));
    Choice given{plan_for(stages, micro_batches), micro_batch_of(context, context.global_batch / micro_batches), {}};
    given.plan.ranks = place_stages(context.workers, replicas);
    given.layout = given_layout(context, *given.micro_batch, given.plan, replicas);
    return given;
  };
  auto [plan, micro_batch, layout] = chosen();
  for (const int replicas : layout.replicas) plan.traces.push_back(&micro_batch->share(replicas));
  plan.chunks = make_chunks(plan.traces, layout.boundaries, splits_backward(schedule_));
  plan.ranks = place_stages(context.workers, layout.replicas);
  plan.by_layer = mesh_ && plan.stages() == 1 && schedule_ == PipelineSchedule::one_f_one_b;
  if (divided) {
    plan.exchanges = exchanges(*divided, *plan.traces.front());
    for (const double dispatched : divided->dispatched) plan.experts.push_back(dispatched > 0);
    if (scatter_messages_) scatter_messages(plan, *divided);
  }
  const TrainingRound round = synchronisation_->round(layout.replicas.front());
  check_round(plan, round);
  TrainingStep step;
  if (divided) step.notes = divided->notes;
  step.steps = round.steps;
  step.composition = text(plan);
  if (plan.by_layer)
    step.memory = {{"worker", context.workers, replica_memory(*plan.traces.front(), context.optimizer)}};
  else
    step.memory = pipeline_memory(plan, context.optimizer);
  step.graph = step_graph(plan, context, *synchronisation_, step.memory);
  return step;
}

}  // namespace epocast
