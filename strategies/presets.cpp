#include "strategies/presets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace epocast {
namespace {

struct Preset {
  const char* name;
  const char* description;
  const char* strategy;  ///< of which it is a setting
  std::vector<std::pair<const char*, const char*>> fixed;
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all{
      {"ddp",
       "PyTorch DistributedDataParallel: data_parallel with buckets",
       "data_parallel",
       {{"granularity", "bucket"}}},
      {"horovod",
       "Horovod: data_parallel that fuses what waits, cycle by cycle",
       "data_parallel",
       {{"granularity", "cycle"}}},
      {"fsdp", "PyTorch FullyShardedDataParallel: sharded_data_parallel", "sharded_data_parallel", {{"stage", "3"}}},
      {"zero1", "ZeRO stage 1: sharded optimizer state", "sharded_data_parallel", {{"stage", "1"}}},
      {"zero2", "ZeRO stage 2: sharded gradients too", "sharded_data_parallel", {{"stage", "2"}}},
      {"zero3", "ZeRO stage 3: sharded parameters too", "sharded_data_parallel", {{"stage", "3"}}},
      {"gpipe", "GPipe: a pipeline of all forward, then all backward passes", "pipeline", {{"schedule", "gpipe"}}},
      {"pipedream", "PipeDream: a pipeline without flush", "pipeline", {{"schedule", "pipedream"}}},
      {"distributed_replicated",
       "TensorFlow 1: parameter_server, nodes sum first, a step begins when all is pulled",
       "parameter_server",
       {{"mode", "sync"},
        {"by_node", "true"},
        {"granularity", "tensor"},
        {"overlap", "step"},
        {"requests", "concurrent"},
        {"compression", "none"}}},
      {"dist_device_sync",
       "MXNet: parameter_server, nodes sum first",
       "parameter_server",
       {{"mode", "sync"},
        {"by_node", "true"},
        {"granularity", "tensor"},
        {"requests", "concurrent"},
        {"compression", "none"}}}};
  return all;
}

/// The preset's options as its strategy takes them. Throws ConfigError for one that the preset fixes.
ConfigNode expanded(const Preset& preset, const ConfigNode& options) {
  ConfigNode out = options;
  for (const auto& [key, value] : preset.fixed) {
    if (options.has(key))
      throw options.at(key).error(fmt::format("{} is {} with {}: {}; leave this out, or name {}", preset.name,
                                              preset.strategy, key, value, preset.strategy));
    out = out.with(key, ConfigNode::load_text(value, preset.name));
  }
  return out;
}

EntryInfo info_of(const Preset& preset, const EntryInfo& base) {
  EntryInfo info{preset.name, preset.description, {}, preset.strategy};
  for (const ParameterInfo& parameter : base.parameters) {
    bool fixed = false;
    for (const auto& [key, value] : preset.fixed) fixed |= parameter.name == key;
    if (!fixed) info.parameters.push_back(parameter);
  }
  return info;
}

/// Tensor x pipeline x data as Megatron-LM's flags name them.
ConfigNode megatron(const ConfigNode& options) {
  const auto number = [&](const char* key) { return std::to_string(options.get(key, std::int64_t{1}, Range{1, 1e6})); };
  const int chunks = static_cast<int>(options.get("virtual_stages", 1, Range{1, 1000}));
  std::string schedule = chunks > 1 ? fmt::format("interleaved, virtual_stages: {}", chunks) : "1f1b";
  if (options.has("micro_batches"))
    schedule += fmt::format(", micro_batches: {}", options.at("micro_batches").as_int(Range{1, 1e5}));
  const bool tensor = options.get("tensor", std::int64_t{1}, Range{1, 1e6}) > 1;
  const bool positions = options.get("sequence_parallel", false);
  if (positions && !tensor)
    throw options.at("sequence_parallel").error("positions are divided along the tensor axis; set tensor");
  std::vector<std::string> bodies;  // context has no options here
  if (tensor) bodies.push_back(fmt::format("{{name: tensor, sequence_parallel: {}}}", positions));
  if (options.has("capacity")) {
    if (number("expert") == "1") throw options.at("capacity").error("experts are not divided; set expert");
    bodies.push_back(fmt::format("{{name: experts, capacity: {}}}", options.at("capacity").as_double({0.1, 100})));
  }
  const std::string body = bodies.empty() ? "" : fmt::format(", body: [{}]", fmt::join(bodies, ", "));
  const bool sharded = options.get("distributed_optimizer", false);
  const bool overlap = options.get("overlap_grad_reduce", false);
  const bool overlap_gathers = options.get("overlap_param_gather", false);
  if (overlap_gathers && !sharded)
    throw options.at("overlap_param_gather").error("parameters are gathered with distributed_optimizer only; set that");
  if (overlap_gathers && !overlap)
    throw options.at("overlap_param_gather")
        .error(
            "Megatron-LM gathers early only what it reduces early; set "
            "overlap_grad_reduce, too");
  // Buckets of 40 million values if anything overlaps, else one of all: bucket_size in Megatron-LM,
  // megatron/core/distributed/distributed_data_parallel_config.py. Units are counted in parameters, of two bytes.
  const std::string synchronisation =
      sharded   ? fmt::format("{{name: sharded, stage: 1, overlap: {}, overlap_gathers: {}, unit: {}}}", overlap,
                              overlap_gathers, overlap ? "80 MB" : "1 TB")
      : overlap ? "{name: all_reduce, bucket: 160 MB}"
                : "{name: all_reduce, granularity: model, overlap: false}";
  // The order of Megatron-LM's ranks: tensor varies fastest, then what divides or repeats samples, then pipeline.
  return ConfigNode::load_text(
      fmt::format(
          "{{mesh: {{pipeline: {}, data: rest, context: {}, expert: {}, tensor: {}}}, schedule: {{name: {}}}{}, "
          "synchronisation: {}}}",
          number("pipeline"), number("context"), number("expert"), number("tensor"), schedule, body, synchronisation),
      "megatron");
}

const EntryInfo& megatron_info() {
  static const EntryInfo info{
      "megatron",
      "Megatron-LM: tensor x pipeline x context x expert x data parallelism; data takes the rest of the workers",
      {{"tensor", "count", "1 .. heads", "1", "devices that share each layer: --tensor-model-parallel-size"},
       {"pipeline", "count", "1 .. layers", "1", "stages: --pipeline-model-parallel-size"},
       {"context", "count", "1 .. positions", "1", "devices that share each sequence: --context-parallel-size"},
       {"expert", "count", "1 .. experts", "1", "devices that share experts: --expert-model-parallel-size"},
       {"capacity", "", "0.1 .. 100", "none", "--moe-expert-capacity-factor"},
       {"micro_batches", "count", "1 .. replica's batch", "up to 4 per stage",
        "global batch / (data x --micro-batch-size)"},
       {"virtual_stages", "count", "1 .. 1000", "1",
        "chunks of layers per stage, interleaved: --num-virtual-stages-per-pipeline-rank"},
       {"sequence_parallel", "", "true | false", "false", "--sequence-parallel"},
       {"distributed_optimizer", "", "true | false", "false", "--use-distributed-optimizer: ZeRO stage 1"},
       {"overlap_grad_reduce", "", "true | false", "false", "--overlap-grad-reduce: with the backward pass"},
       {"overlap_param_gather", "", "true | false", "false", "--overlap-param-gather: with the forward pass"}},
      "composition"};
  return info;
}

}  // namespace

void add_presets(StrategyRegistry& registry) {
  const auto base = std::make_shared<const StrategyRegistry>(registry);
  const auto make = [base](const char* strategy, const ConfigNode& changed, const ConfigNode& options) {
    std::unique_ptr<Strategy> made = base->make(strategy, changed, options);
    if (changed.has("name")) changed.at("name");
    changed.check_all_read();
    options.mark_all_read();
    return made;
  };
  for (const Preset& preset : presets())
    registry.add(info_of(preset, *base->find(preset.strategy)), [&preset, make](const ConfigNode& options) {
      return make(preset.strategy, expanded(preset, options), options);
    });
  registry.add(megatron_info(), [make](const ConfigNode& options) {
    const ConfigNode composition = megatron(options);
    options.check_all_read();
    return make("composition", composition, options);
  });
}

}  // namespace epocast
