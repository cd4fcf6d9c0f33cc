// What compositions and pipelines tell about their options.

#include <algorithm>
#include <string>
#include <vector>

#include "strategies/composition.hpp"
#include "strategies/synchronisation/all_reduce.hpp"

namespace epocast {

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
        "slowest stage as fast as possible within memory, or whatever the memory; halved again and again; or equally "
        "many layers"},
       {"split_bandwidth", "bytes/s", "> 0", "infinite",
        "of a device's link: split: time balances messages as well as computation"},
       {"first_layers", "", "list of layers", "none", "instead of split: where each stage but the first begins"},
       {"gradients", "", "collocated | one_processor", "collocated",
        "each stage computes its own gradients, or the last one all (schedule: naive)"},
       {"recompute", "", "true | false", "false",
        "keep only what a stage receives, and compute the rest again before the backward pass"},
       {"copy_rate", "bytes/s", "> 0", "infinite",
        "at which a message is copied to and from the network, beside computing"},
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
      {"gpipe", "all forward passes, then all backward passes", {"micro_batches"}},
      {"1f1b", "a forward and a backward pass in turn, with flush; of a single stage: accumulation", {"micro_batches"}},
      {"interleaved", "1f1b over several chunks of layers per stage", {"micro_batches", "virtual_stages"}},
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
           {"body", "", "whole, tensor, filters, context, experts; with options; or a list",
            "one for each such axis, else whole", "how layers are divided over devices"},
           {"synchronisation", "", "a name of `epocast list synchronisations`; with options", "all_reduce",
            "how replicas agree"}}};
}

}  // namespace epocast
