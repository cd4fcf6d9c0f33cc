#include "strategies/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/choice.hpp"
#include "strategies/partitioners/contiguous_split.hpp"

namespace epocast {
namespace {

constexpr double kMost = 1e5;  // stages, micro-batches

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

const std::vector<std::pair<std::string, PipelineSchedule>>& schedules() {
  static const std::vector<std::pair<std::string, PipelineSchedule>> all{
      {"naive", PipelineSchedule::naive},         {"gpipe", PipelineSchedule::gpipe},
      {"1f1b", PipelineSchedule::one_f_one_b},    {"interleaved", PipelineSchedule::interleaved},
      {"zb_h1", PipelineSchedule::zb_h1},         {"zb_h2", PipelineSchedule::zb_h2},
      {"pipedream", PipelineSchedule::pipedream}, {"2bw", PipelineSchedule::two_bw},
      {"threaded", PipelineSchedule::threaded}};
  return all;
}

/// Versions of its weights that a stage holds, the current one included.
int weight_versions(PipelineSchedule schedule, int stages, int stage) {
  if (schedule == PipelineSchedule::pipedream) return in_flight_without_flush(stages, stage);
  return schedule == PipelineSchedule::two_bw ? 2 : 1;
}

/// As many forward passes, then as many backward passes, as a stage can have under way.
StageProgram busiest_moment(const PipelinePlan& plan, int stage) {
  const int window =
      plan.schedule == PipelineSchedule::threaded ? plan.in_flight : in_flight_without_flush(plan.stages(), stage);
  StageProgram program;
  for (int k = 0; k < window; ++k) program.push_back({PipelinePass::forward, stage, k});
  for (int k = 0; k < window; ++k) program.push_back({PipelinePass::backward, stage, k});
  return program;
}

std::vector<DeviceMemory> memory_of(const PipelinePlan& plan, Optimizer optimizer, Precision precision) {
  std::vector<DeviceMemory> memory;
  const std::vector<StageProgram> programs = programs_of(plan);
  for (int s = 0; s < plan.stages(); ++s) {
    const auto stage = static_cast<std::size_t>(s);
    const StageProgram program = flushes(plan.schedule) ? programs[stage] : busiest_moment(plan, s);
    const int versions = weight_versions(plan.schedule, plan.stages(), s);
    memory.push_back({fmt::format("stage {}", s), plan.devices[stage],
                      stage_memory(plan.chunks, s, program, versions, plan.recompute, optimizer, precision)});
    if (plan.gradients != GradientPlace::one_processor || s + 1 < plan.stages()) continue;
    // The one that computes all gradients has a copy of all others' weights, and makes their gradients.
    MemoryUse& use = memory.back().use;
    for (int other = 0; other < s; ++other) {
      use.parameters += plan.chunks[static_cast<std::size_t>(other)].parameters;
      use.gradients += plan.chunks[static_cast<std::size_t>(other)].parameters;
      use.activations += plan.chunks[static_cast<std::size_t>(other)].activations;
    }
  }
  return memory;
}

}  // namespace

EntryInfo Pipeline::info() {
  return {"pipeline",
          "pipeline parallelism: consecutive layers on consecutive devices",
          {{"schedule", "", "naive | gpipe | 1f1b | interleaved | zb_h1 | zb_h2 | pipedream | 2bw | threaded", "1f1b",
            "who computes what when"},
           {"stages", "count", "1 .. workers", "workers", "devices of one pipeline; the workers are its replicas"},
           {"micro_batches", "count", "1 .. replica's batch", "up to 4 per stage",
            "pieces of a replica's batch; schedules without them take it whole"},
           {"virtual_stages", "count", "2 .. 1000", "2", "chunks of layers per stage (schedule: interleaved)"},
           {"in_flight", "batches", "1 .. 1000", "stages", "batches under way at a time (schedule: threaded)"},
           {"split", "", "time | bisection | even", "time",
            "slowest stage as fast as possible, or halved again and again, or equally many layers"},
           {"split_bandwidth", "bytes/s", "> 0", "infinite",
            "of a stage's link: split: time balances messages as well as computation"},
           {"first_layers", "", "list of layers", "none", "instead of split: where each stage but the first begins"},
           {"gradients", "", "collocated | one_processor", "collocated",
            "each stage computes its own gradients, or the last one all (schedule: naive)"},
           {"recompute", "", "true | false", "false",
            "keep only what a stage receives, and compute the rest again before the backward pass"},
           {"copy_rate", "bytes/s", "> 0", "infinite",
            "at which a message is copied to and from the network, beside computing"},
           {"granularity", "", "tensor | layer | bucket | model", "bucket",
            "what one all-reduce between a stage's replicas carries"},
           {"bucket", "bytes", "> 0", "25 MiB", "size at which a bucket is closed (granularity: bucket)"},
           {"overlap", "", "true | false", "true", "start all-reduces during the last micro-batch's backward pass"},
           {"placement", "", "stage_major | replica_major", "stage_major",
            "neighbouring workers are replicas of a stage, or stages of a replica"}}};
}

Pipeline::Pipeline(const ConfigNode& options)
    : options_(options),
      schedule_(choose(options, "schedule", schedules(), PipelineSchedule::one_f_one_b)),
      stages_(count(options, "stages")),
      micro_batches_(count(options, "micro_batches")),
      in_flight_(count(options, "in_flight")),
      chunks_per_stage_(schedule_ == PipelineSchedule::interleaved
                            ? static_cast<int>(options.get("virtual_stages", 2, Range{2, 1000}))
                            : 1),
      split_(choose(options, "split",
                    {{"time", SplitRule::time}, {"bisection", SplitRule::bisection}, {"even", SplitRule::even}},
                    SplitRule::time)),
      split_bandwidth_(options.has("split_bandwidth") ? options.at("split_bandwidth").as_bytes_per_second({1, 1e300})
                                                      : BytesPerSecond(1e300)),
      gradients_(choose(options, "gradients",
                        {{"collocated", GradientPlace::collocated}, {"one_processor", GradientPlace::one_processor}},
                        GradientPlace::collocated)),
      recompute_(options.get("recompute", false)),
      copy_(options.has("copy_rate") ? 1 / options.at("copy_rate").as_bytes_per_second({1, 1e300}).value : 0),
      overlap_(options.get("overlap", true)),
      placement_(choose(options, "placement",
                        {{"stage_major", Placement::stage_major}, {"replica_major", Placement::replica_major}},
                        Placement::stage_major)) {
  reductions_.granularity = choose(options, "granularity",
                                   {{"tensor", Granularity::tensor},
                                    {"layer", Granularity::layer},
                                    {"bucket", Granularity::bucket},
                                    {"model", Granularity::model}},
                                   Granularity::bucket);
  reductions_.limit = reductions_.first = options.get("bucket", reductions_.limit, Range{1, 1e15});
  if (options.has("first_layers")) first_layers_ = options.at("first_layers").items();
  check_options();
}

void Pipeline::check_options() const {
  const auto refuse = [&](const char* key, bool wrong, const char* problem) {
    if (options_.has(key) && wrong) throw options_.at(key).error(problem);
  };
  refuse("virtual_stages", schedule_ != PipelineSchedule::interleaved, "only schedule: interleaved has virtual stages");
  refuse("in_flight", schedule_ != PipelineSchedule::threaded,
         "only schedule: threaded sets its number of batches; the others follow from the schedule");
  refuse("split_bandwidth", split_ != SplitRule::time || options_.has("first_layers"),
         "only split: time looks at bandwidth");
  refuse("split", options_.has("first_layers"), "first_layers already says where to split; leave out one of the two");
  refuse("bucket", reductions_.granularity != Granularity::bucket,
         "a bucket size has no effect with this granularity; use granularity: bucket");
  refuse("gradients", gradients_ == GradientPlace::one_processor && schedule_ != PipelineSchedule::naive,
         "one processor computes all gradients in schedule: naive only");
  if (micro_batches_ && *micro_batches_ > 1 && takes_whole_batches(schedule_))
    throw options_.at("micro_batches")
        .error("this schedule takes a batch as a whole; leave out micro_batches, or use gpipe, 1f1b, 2bw, ...");
}

int Pipeline::stages_on(std::size_t workers) const {
  const int have = static_cast<int>(workers), stages = stages_.value_or(have);
  if (stages > have)
    throw place("stages").error(
        fmt::format("{} stages need {} workers, but the study has {}; set workers to a multiple of {}", stages, stages,
                    have, stages));
  if (have % stages != 0)
    throw place("stages").error(fmt::format(
        "{} workers do not divide into pipelines of {} stages; set stages to {}, or workers to {} or {}", have, stages,
        nearest_divisors(have, stages), have / stages * stages, (have / stages + 1) * stages));
  return stages;
}

int Pipeline::micro_batches_of(std::int64_t replica_batch, int stages) const {
  if (takes_whole_batches(schedule_)) return 1;
  const bool in_groups = schedule_ == PipelineSchedule::interleaved;
  // The global batch is a multiple of the workers, so that a replica's is one of its stages.
  int micro_batches = micro_batches_.value_or(0);
  for (int per_stage = 4; micro_batches == 0; --per_stage)
    if (replica_batch % (static_cast<std::int64_t>(per_stage) * stages) == 0) micro_batches = per_stage * stages;
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
  if (replica_batch % micro_batches != 0)
    throw where.error(fmt::format("a replica's batch of {} samples does not divide into {} micro-batches; use {}",
                                  replica_batch, micro_batches, nearest_divisors(replica_batch, micro_batches)));
  return micro_batches;
}

std::vector<std::size_t> Pipeline::named_boundaries(const WorkloadTrace& trace, int chunks) const {
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

std::vector<std::size_t> Pipeline::boundaries(const WorkloadTrace& trace, int chunks) const {
  if (!first_layers_.empty() || options_.has("first_layers")) return named_boundaries(trace, chunks);
  try {
    return split_layers(trace, chunks, split_, split_bandwidth_);
  } catch (const SplitError& problem) {
    throw place(chunks_per_stage_ > 1 && options_.has("virtual_stages") ? "virtual_stages" : "stages")
        .error(fmt::format("{} stages{} are too many: {}", chunks,
                           chunks_per_stage_ > 1 ? fmt::format(" ({} of them on each device)", chunks_per_stage_) : "",
                           problem.what()));
  }
}

std::vector<std::vector<Bucket>> Pipeline::reductions(const WorkloadTrace& trace,
                                                      const std::vector<Chunk>& chunks) const {
  std::vector<std::vector<Bucket>> all;
  for (const Chunk& chunk : chunks) {
    WorkloadTrace own = trace;
    for (std::size_t l = 0; l < own.layers.size(); ++l)
      if (l < chunk.first || l >= chunk.last) own.layers[l].gradients.clear();
    all.push_back(make_buckets(own, reductions_));
    for (Bucket& bucket : all.back())
      if (!overlap_) bucket.ready_after = chunk.first;
  }
  return all;
}

TrainingStep Pipeline::compile(const StrategyContext& context) const {
  const int stages = stages_on(context.workers.size());
  const int replicas = static_cast<int>(context.workers.size()) / stages;
  if (gradients_ == GradientPlace::one_processor && replicas > 1)
    throw options_.at("gradients").error("one processor for all gradients and replicas of stages do not go together");
  const std::int64_t replica_batch = context.global_batch / replicas;

  PipelinePlan plan;
  plan.schedule = schedule_;
  plan.micro_batches = micro_batches_of(replica_batch, stages);
  plan.in_flight = in_flight_.value_or(stages);
  plan.recompute = recompute_;
  plan.copy = copy_;
  plan.gradients = gradients_;
  plan.collective = context.collective;
  const WorkloadTrace trace = context.trace(replica_batch / plan.micro_batches);
  plan.chunks = make_chunks(trace, boundaries(trace, stages * chunks_per_stage_), stages);
  if (replicas > 1) plan.reductions = reductions(trace, plan.chunks);
  for (int s = 0; s < stages; ++s) {
    plan.devices.emplace_back();
    for (int r = 0; r < replicas; ++r)
      plan.devices.back().push_back(context.workers[static_cast<std::size_t>(
          placement_ == Placement::stage_major ? s * replicas + r : r * stages + s)]);
  }
  return {pipeline_graph(plan, trace), memory_of(plan, context.optimizer, trace.precision)};
}

}  // namespace epocast
