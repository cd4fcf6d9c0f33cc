#include "strategies/composition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "sim/recompute.hpp"
#include "strategies/bodies/mpmd_body.hpp"
#include "strategies/partitioners/contiguous_split.hpp"
#include "strategies/step/composition_text.hpp"
#include "strategies/step/host_copies.hpp"
#include "strategies/step/options.hpp"
#include "strategies/step/part.hpp"
#include "strategies/step/shared_table.hpp"
#include "strategies/step/stage_memory.hpp"
#include "strategies/synchronisation/all_reduce.hpp"

namespace epocast {
namespace {

constexpr double kMost = 1e5;  // stages, micro-batches

std::optional<int> count(const ConfigNode& options, const char* key) {
  if (!options.has(key)) return std::nullopt;
  return static_cast<int>(options.at(key).as_int({1, kMost}));
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

int common_multiple(const std::vector<int>& values) {
  std::int64_t out = 1;
  for (const int value : values) out = std::min(std::lcm(out, static_cast<std::int64_t>(value)), std::int64_t{1} << 30);
  return static_cast<int>(out);
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
  Bodies divided = read_bodies(options, mesh, bodies);
  for (const auto& [name, body] : divided)
    if (const auto* mpmd = dynamic_cast<const MpmdBody*>(body.get())) return compose_mpmd(*mpmd, name, options, mesh);
  const Part synchronisation = read_part(options, "synchronisation", "all_reduce");
  const Part schedule = read_part(options, "schedule", "1f1b");
  if (mesh.extent("pipeline") > 1) refuse_piecewise_updates(synchronisation.options);
  auto made = std::unique_ptr<Composition>(
      new Composition({schedule.named_in, schedule.name_key, schedule.options}, mesh, std::move(divided),
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

/// Whether copies to the host are reckoned by pass of a stage. A trace knows by layer how long it waits for them, but
/// only where all of its layers are on one device, with one pass under way.
bool Composition::copies_by_pass(const StepPlan& plan) const {
  return recompute_ || plan.stages() > 1 || passes_under_way(plan).front() > 1;
}

std::unique_ptr<MicroBatch> Composition::micro_batch_of(const StrategyContext& context, const StepPlan& plan) const {
  TraceSource source = context.micro_batch_trace(plan.micro_batches);
  if (copies_by_pass(plan))
    source = [this, made = source](std::int64_t batch) {
      WorkloadTrace trace = made(batch);
      take_out_copies(trace);
      if (!recompute_) return trace;
      if (forgets(trace))
        throw options_.at("recompute")
            .error("memory.recompute already says what is forgotten and computed again; leave out one of the two");
      forget_everything(trace);
      return trace;
    };
  return std::make_unique<MicroBatch>(std::move(source), context.global_batch / plan.micro_batches,
                                      splits_backward(schedule_));
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

/// Of how many micro-batches a step may tell of the whole one (sim/long_step.hpp), alone, or with shorter ones where it
/// does not repeat itself: where that saves a third of the work at least, or half if it seldom tells alone.
/// Without patience, of fewer if they are enough to estimate it, where that is sooner. Nothing if it is not to be
/// shortened.
std::optional<ShortenedStep> Composition::shortened(const StepPlan& plan, const StepLength& length) const {
  const int all = plan.micro_batches;
  const Repetition of = repetition(schedule_, plan.stages(), std::max(1, length.patience));
  const auto step_of = [&](int micro_batches) {
    constexpr int kParts = 8;  // one of which is the window
    const int repeat = std::max(1, of.repeat), window = std::max(1, micro_batches / kParts / repeat) * repeat;
    return ShortenedStep{micro_batches, all - micro_batches, of.repeat, of.seen, of.alone, 0, window};
  };
  if (length.micro_batches > 0) return step_of(length.micro_batches);
  const std::size_t passes = plan.traces.front()->layers.size() * static_cast<std::size_t>(all);
  if (of.repeat == 0 || gradients_ != GradientPlace::collocated || passes < length.shorten_from) return std::nullopt;
  const int fewer = of.fewest + std::max(0, all - of.fewest) % of.multiple;
  const bool saves = of.alone ? 3 * fewer <= 2 * all : 2 * fewer <= all;
  const bool may_be_estimated =
      length.patience == 0 && of.estimable > 0 && of.estimable < fewer && 3 * of.estimable <= 2 * all;
  if (may_be_estimated) {
    ShortenedStep step = step_of(of.estimable);
    step.alone = false;
    // If it tells at all, then mostly late, when iterations overlap.
    if (saves) step.more = of.alone ? fewer : ShortenedStep::kIfTheyOverlap * fewer;
    return step;
  }
  return saves ? std::optional(step_of(fewer)) : std::nullopt;
}

TrainingStep Composition::compile(const StrategyContext& whole) const {
  StrategyContext context = whole;
  if (mesh_) mesh_->on(whole.workers.size());  // throws
  const std::optional<DividedModel> divided = divide(whole);
  if (divided) context.trace = whole.trace_of(divided->part);
  const auto chosen = [&]() -> Choice {
    if (choose_replicas_) return best_layout(context);
    const std::vector<int> replicas = replicas_on(context.workers.size());
    if (gradients_ == GradientPlace::one_processor && std::ranges::any_of(replicas, [](int of) { return of > 1; }))
      throw options_.at("gradients").error("one processor for all gradients and replicas of stages do not go together");
    const int stages = static_cast<int>(replicas.size());
    const int micro_batches = micro_batches_of(context.global_batch, stages, common_multiple(replicas));
    Choice given{plan_for(stages, micro_batches), {}, {}};
    given.micro_batch = micro_batch_of(context, given.plan);
    given.plan.ranks = place_stages(context.workers, replicas);
    given.layout = given_layout(context, *given.micro_batch, given.plan, replicas);
    return given;
  };
  auto [plan, micro_batch, layout] = chosen();
  for (const int replicas : layout.replicas) plan.traces.push_back(&micro_batch->share(replicas));
  const auto traces = share_tables(plan, layout.boundaries, context);  // which the plan refers to
  if (gradients_ == GradientPlace::one_processor && plan.traces.front()->host_link.any())
    throw options_.at("gradients")
        .error(
            "one processor for all gradients is sent the activations, so that they cannot be in the host's memory; "
            "leave activations out of memory.offload");
  // Nobody is sent activations for gradients that there are none of.
  if (!plan.traces.front()->goes_back()) plan.gradients = GradientPlace::collocated;
  plan.chunks = make_chunks(plan.traces, layout.boundaries, splits_backward(schedule_));
  std::vector<WorkloadTrace> with_copies;
  if (plan.traces.front()->host_link.any() && copies_by_pass(plan)) with_copies = wait_for_copies(plan, context);
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
  step.input_shares = layout.replicas.front();
  step.composition = text(plan);
  if (plan.by_layer)
    step.memory = {{"worker", context.workers, replica_memory(*plan.traces.front(), context.optimizer)}};
  else
    step.memory = pipeline_memory(plan, context.optimizer);
  if (round.steps == 1) step.shortened = shortened(plan, context.length);
  if (step.shortened) {
    plan.micro_batches = step.shortened->micro_batches;
    plan.left_out = step.shortened->left_out;
  }
  step.graph = step_graph(plan, context, *synchronisation_, step.memory);
  return step;
}

}  // namespace epocast
