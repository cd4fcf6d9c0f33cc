// What compositions and pipelines tell about their options, and which of them they refuse.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "strategies/composition.hpp"
#include "strategies/synchronisation/all_reduce.hpp"

namespace epocast {
namespace {

constexpr int kMostSteps = 1000;  // of a round, one by one

}  // namespace

EntryInfo Composition::pipeline_info() {
  EntryInfo info{
      "pipeline",
      "pipeline parallelism: consecutive layers on consecutive devices",
      {{"schedule", "", "naive | gpipe | 1f1b | interleaved | zb_h1 | zb_h2 | pipedream | 2bw | threaded", "1f1b",
        "who computes what when"},
       {"stages", "count", "1 .. workers", "workers", "devices of one pipeline; the workers are its replicas"},
       {"replicas", "", "auto, or list of counts", "workers / stages each",
        "of each stage in turn, or such that the estimated time of a batch is least (split: time)"},
       {"micro_batches", "count", "1 .. replica's batch", "up to 4 per stage",
        "pieces of a replica's batch; schedules without them take it whole"},
       {"virtual_stages", "count", "2 .. 1000", "2", "chunks of layers per stage (schedule: interleaved)"},
       {"in_flight", "batches", "1 .. 1000", "stages", "batches under way at a time (schedule: threaded)"},
       {"split", "", "time | time_only | bisection | even", "time",
        "slowest stage as fast as possible within memory, or whatever the memory; halved again and again; equally "
        "many layers; or, as blocks and by default over a mesh, copies of the block that the network repeats"},
       {"split_bandwidth", "bytes/s", "> 0", "infinite",
        "of a device's link: split: time balances messages as well as computation"},
       {"first_layers", "", "list of layers", "none", "instead of split: where each stage but the first begins"},
       {"gradients", "", "collocated | one_processor", "collocated",
        "each stage computes its own gradients, or the last one all (schedule: naive)"},
       {"recompute", "", "true | false", "false",
        "keep only what a stage receives, and compute the rest again before the backward pass"},
       {"copy_rate", "bytes/s", "> 0", "infinite",
        "at which a message is copied to and from the network, beside computing"},
       {"blocking_messages", "", "true | false", "false",
        "a stage stands still while its messages travel (schedule: gpipe, 1f1b, interleaved)"},
       {"placement", "", "stage_major | replica_major", "stage_major",
        "neighbouring workers are replicas of a stage, or stages of a replica"}}};
  for (ParameterInfo& parameter : AllReduce::info().parameters)
    if (parameter.name != "update") info.parameters.push_back(std::move(parameter));
  return info;
}

std::vector<EntryInfo> Composition::schedule_infos() {
  struct Described {
    const char* name;
    const char* description;
    std::vector<std::string> options;  ///< besides those that all have
  };
  const std::vector<Described> all{
      {"naive", "one batch at a time, whole", {"gradients"}},
      {"gpipe", "all forward passes, then all backward passes", {"micro_batches", "blocking_messages"}},
      {"1f1b",
       "a forward and a backward pass in turn, with flush; of a single stage: accumulation",
       {"micro_batches", "blocking_messages"}},
      {"interleaved",
       "1f1b over several chunks of layers per stage",
       {"micro_batches", "virtual_stages", "blocking_messages"}},
      {"zb_h1", "zero bubble in the memory of 1f1b", {"micro_batches"}},
      {"zb_h2", "zero bubble in twice the memory", {"micro_batches"}},
      {"pipedream", "1f1b without flush, an update after every batch, stashed weights", {}},
      {"2bw", "1f1b without flush, gradients accumulated, two versions of weights", {"micro_batches"}},
      {"threaded", "several batches in flight, the oldest first", {"in_flight"}}};
  std::vector<EntryInfo> infos;
  for (const Described& schedule : all) {
    std::vector<std::string> options = schedule.options;
    for (const char* common : {"split", "split_bandwidth", "first_layers", "recompute", "copy_rate"})
      options.emplace_back(common);
    EntryInfo& info = infos.emplace_back(EntryInfo{schedule.name, schedule.description, {}});
    for (const ParameterInfo& parameter : pipeline_info().parameters)
      if (std::ranges::find(options, parameter.name) != options.end()) info.parameters.push_back(parameter);
    info.parameters.push_back({"scatter_messages", "", "true | false", "true",
                               "each device of a team sends its part of what the next stage reads, which gathers it"});
  }
  return infos;
}

EntryInfo Composition::info() {
  return {"composition",
          "schedule x body x synchronisation over a mesh of devices; what a `strategy` with a mesh is",
          {{"mesh", "", "{pipeline: p, data: d, context: c, expert: e, tensor: t}", "required",
            "axes of the grid of devices, the last of them neighbours; those left out are 1"},
           {"schedule", "", "a schedule of pipeline, with options", "1f1b",
            "order of passes; options: micro_batches, virtual_stages, split, first_layers, recompute, ... of pipeline; "
            "of a single stage it is accumulation"},
           {"body", "", "a name of `epocast list bodies`, or whole; with options; or a list",
            "one for each such axis, else whole", "how layers are divided over devices"},
           {"synchronisation", "", "a name of `epocast list synchronisations`; with options", "all_reduce",
            "how replicas agree"}}};
}

void Composition::check_options() const {
  const auto refuse = [&](const char* key, bool wrong, const char* problem) {
    if (options_.has(key) && wrong) throw options_.at(key).error(problem);
  };
  refuse("virtual_stages", schedule_ != PipelineSchedule::interleaved, "only schedule: interleaved has virtual stages");
  refuse("blocking_messages",
         blocking_ && (!flushes(schedule_) || splits_backward(schedule_) || takes_whole_batches(schedule_)),
         "only schedule: gpipe, 1f1b or interleaved waits for messages; leave this out");
  refuse("in_flight", schedule_ != PipelineSchedule::threaded,
         "only schedule: threaded sets its number of batches; the others follow from the schedule");
  const bool by_time = (split_ == SplitRule::time || split_ == SplitRule::time_only) && !options_.has("first_layers");
  refuse("split_bandwidth", !by_time, "only split: time looks at bandwidth");
  refuse("replicas", choose_replicas_ && !by_time,
         "only split: time chooses numbers of replicas; list them, one per stage");
  refuse("replicas", choose_replicas_ && !options_.has("split_bandwidth"),
         "to choose numbers of replicas, split_bandwidth must say what a device's link carries");
  refuse("replicas", choose_replicas_ && schedule_ == PipelineSchedule::interleaved,
         "replicas of interleaved stages are not chosen; list them, one per stage");
  refuse("split", options_.has("first_layers"), "first_layers already says where to split; leave out one of the two");
  refuse("gradients", gradients_ == GradientPlace::one_processor && schedule_ != PipelineSchedule::naive,
         "one processor computes all gradients in schedule: naive only");
  if (micro_batches_ && *micro_batches_ > 1 && takes_whole_batches(schedule_))
    throw options_.at("micro_batches")
        .error("this schedule takes a batch as a whole; leave out micro_batches, or use gpipe, 1f1b, 2bw, ...");
}

/// What goes on in one step while the next one has begun, and what needs all of a step to be over.
void Composition::check_synchronisation(const std::string& schedule, const std::string& name) const {
  if (synchronisation_->round(1).one_version && !flushes(schedule_))
    throw synchronisation_place_.error(
        fmt::format("{} exchanges parameters between steps, but schedule {} never ends a step: it has several versions "
                    "of the parameters under way; use schedule: 1f1b, or synchronisation: all_reduce",
                    name, schedule));
  for (const char* axis : {"context", "expert"})
    if (synchronisation_->round(1).data_only && mesh_->extent(axis) > 1)
      throw synchronisation_place_.error(
          fmt::format("{} is between replicas that have samples of their own, but those along {} work on each other's; "
                      "use synchronisation: all_reduce or sharded, or a mesh without {}",
                      name, axis, axis));
  if (gradients_ == GradientPlace::one_processor && name != "all_reduce")
    throw options_.at("gradients")
        .error("one processor computes all gradients only with synchronisation: all_reduce; leave this out");
}

void Composition::check_round(const StepPlan& plan, const TrainingRound& round) const {
  const bool as_one = round.quiet && plan.by_layer && plan.exchanges.empty();
  if (as_one || round.steps <= kMostSteps) return;
  throw synchronisation_place_.error(fmt::format(
      "a round of {} steps{} is too long: these steps are simulated one by one; use a period of at most {} steps{}",
      round.steps, round.quiet ? " in a pipeline, or of teams that share layers," : "", kMostSteps / round.periods,
      round.quiet ? ", or a mesh with a data axis only" : ""));
}

}  // namespace epocast
