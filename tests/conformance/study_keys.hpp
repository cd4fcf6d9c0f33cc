#pragma once
// What each key of a study may do to each column of the result, whatever the strategy.

#include <string>
#include <vector>

namespace epocast::conformance {

/// How a column may change from one study to the other.
enum class Change {
  none,      ///< the same to 1e-9
  not_less,  ///< grows or stays
  not_more,  ///< shrinks or stays
  more,      ///< grows
  any,
};

/// Two studies that differ in one key, and how their results relate.
struct KeyEffect {
  std::string key;   ///< as docs/study-format.md calls it
  std::string from;  ///< YAML lines; empty: the key is left out
  std::string to;
  Change compute = Change::none;  ///< compute_s
  /// iteration_s and total_s. Growth is promised where all ranks keep in step only: see StrategyOptions::in_step.
  Change time = Change::none;
  Change bytes = Change::none;   ///< comm_bytes_per_iteration
  Change memory = Change::none;  ///< peak_memory_bytes
  bool some_refuse = false;      ///< not every strategy can do it: then it says so with the key's name
};

inline std::vector<KeyEffect> key_effects() {
  using enum Change;
  const std::string gigabyte = "collective: {reduction_rate: 1 GB/s}";
  return {
      {.key = "description", .from = "", .to = "description: nothing comes of it"},
      {.key = "workers.hosts", .from = "", .to = "workers: {hosts: [PERMUTED]}"},
      {.key = "dataset.samples", .from = "", .to = "dataset: {samples: 12800}", .compute = any, .time = any},
      {.key = "dataset.epochs", .from = "", .to = "dataset: {samples: 6400, epochs: 2}", .compute = any, .time = any},
      {.key = "dataset.drop_last",
       .from = "dataset: {samples: 6410}",
       .to = "dataset: {samples: 6410, drop_last: true}",
       .compute = any,
       .time = any},
      {.key = "dataset.shards",
       .from = "",
       .to = "dataset: {samples: 6400, shards: stealing}",
       .compute = any,
       .time = any,
       .some_refuse = true},
      {.key = "batch.per_worker",
       .from = "batch: {per_worker: 8}",
       .to = "batch: {per_worker: 16}\ndataset: {samples: 12800}",
       .compute = more,
       .time = not_less,
       .bytes = not_less,
       .memory = not_less},
      {.key = "batch.per_replica",
       .from = "batch: {per_replica: 8}",
       .to = "batch: {per_replica: 16}\ndataset: {samples: 12800}",
       .compute = more,
       .time = not_less,
       .bytes = not_less,
       .memory = not_less},
      {.key = "batch.global", .from = "", .to = "batch: {global: GLOBAL}"},
      {.key = "compute.efficiency",
       .from = "compute: {efficiency: 0.5}",
       .to = "compute: {efficiency: 0.25}",
       .compute = not_less,
       .time = not_less},
      {.key = "compute.memory_efficiency",
       .from = "compute: {memory_efficiency: 0.8}",
       .to = "compute: {memory_efficiency: 0.4}",
       .compute = not_less,
       .time = not_less},
      {.key = "compute.overhead",
       .from = "compute: {overhead: 10 us}",
       .to = "compute: {overhead: 20 us}",
       .compute = more,
       .time = not_less},
      {.key = "compute.scale",
       .from = "compute: {scale: 1}",
       .to = "compute: {scale: 2}",
       .compute = more,
       .time = not_less},
      {.key = "compute.kernel_overhead",
       .from = "",
       .to = "compute: {kernel_overhead: 10 us}",
       .compute = more,
       .time = not_less},
      {.key = "compute.step_overhead",
       .from = "",
       .to = "compute: {step_overhead: 1 ms}",
       .compute = more,
       .time = not_less},
      {.key = "compute.step_time",
       .from = "compute: {step_time: {batch: 8, time: 10 ms}}",
       .to = "compute: {step_time: {batch: 8, time: 20 ms}}",
       .compute = more,
       .time = not_less},
      {.key = "network.efficiency", .from = "", .to = "network: {efficiency: 0.5}", .time = not_less},
      {.key = "network.message_overhead", .from = "", .to = "network: {message_overhead: 50 us}", .time = not_less},
      {.key = "collective.algorithm",
       .from = "collective: {algorithm: ring}",
       .to = "collective: {algorithm: halving_doubling}",
       .time = any,
       .some_refuse = true},
      {.key = "collective.level",
       .from = "collective: {level: flow}",
       .to = "collective: {level: message}",
       .time = any},
      {.key = "collective.rings",
       .from = "collective: {algorithm: ring}",
       .to = "collective: {algorithm: ring, rings: 1}"},
      {.key = "collective.reduction_rate", .from = "", .to = gigabyte, .time = not_less},
      {.key = "collective.cached_reduction",
       .from = gigabyte,
       .to = "collective: {reduction_rate: 1 GB/s, cached_reduction: {up_to: 1 GB, rate: 2 GB/s}}",
       .time = not_more},
      {.key = "stack", .from = "", .to = "stack: {name: ideal, spread: 0.1}", .compute = any, .time = not_less},
      {.key = "precision",
       .from = "",
       .to = "precision: fp16",
       .compute = not_more,
       .time = any,
       .bytes = not_more,
       .memory = not_more},
      {.key = "optimizer",
       .from = "optimizer: sgd",
       .to = "optimizer: adam",
       .compute = not_less,
       .time = not_less,
       .memory = not_less},
      {.key = "optimizer.fused",
       .from = "optimizer: {name: sgd}",
       .to = "optimizer: {name: sgd, fused: false}",
       .compute = not_less,
       .time = not_less},
      // What is computed again is computed; to the last digit, it would be free.
      {.key = "memory.recompute",
       .from = "memory: {recompute: none}",
       .to = "memory: {recompute: sqrt}",
       .compute = more,
       .time = not_less,
       .memory = any,
       .some_refuse = true},
      {.key = "memory.recompute",
       .from = "memory: {recompute: none}",
       .to = "memory: {recompute: blocks}",
       .compute = more,
       .time = not_less,
       .memory = any,
       .some_refuse = true},
      {.key = "memory.workspace",
       .from = "memory: {workspace: none}",
       .to = "memory: {workspace: 1 GB}",
       .memory = not_less},
      {.key = "memory.reserve", .from = "", .to = "memory: {reserve: 1 GB}", .memory = more},
      {.key = "memory.reserve_share", .from = "", .to = "memory: {reserve_share: 0.1}", .memory = more},
      {.key = "schedule",
       .from = "dataset: {samples: 6400, epochs: 2}",
       .to = "schedule: [{epochs: 1}, {epochs: 1}]",
       .compute = any,
       .time = any},
      {.key = "noise.compute_cv", .from = "", .to = "noise: {compute_cv: 0.2}", .compute = any, .time = any},
      {.key = "noise.transfer_cv", .from = "", .to = "noise: {transfer_cv: 0.2}", .compute = any, .time = any},
      {.key = "noise.kind",
       .from = "noise: {compute_cv: 0.2}",
       .to = "noise: {compute_cv: 0.2, kind: gamma}",
       .compute = any,
       .time = any},
      {.key = "noise.per",
       .from = "noise: {compute_cv: 0.2}",
       .to = "noise: {compute_cv: 0.2, per: step}",
       .compute = any,
       .time = any},
      {.key = "noise.seed", .from = "", .to = "noise: {seed: 7}"},
      {.key = "noise.seeds", .from = "", .to = "noise: {seeds: 2}"},
      {.key = "stragglers",
       .from = "",
       .to = "stragglers: [{worker: 0, slowdown: 2}]",
       .compute = any,
       .time = not_less},
      {.key = "stops",
       .from = "",
       .to = "stops: [{worker: 0, from: 1 ms, until: 100 ms}]",
       .compute = any,
       .time = any,
       .bytes = any},  // less where gradients that come late are dropped
      {.key = "failures", .from = "", .to = "failures: {node_mtbf: 1 d, write: 1 s}", .time = not_less},
      {.key = "degraded_links", .from = "", .to = "degraded_links: [{worker: 0, slowdown: 4}]", .time = not_less},
  };
}

/// Keys that are a study's subject, or that stand for others; each has tests of its own.
inline std::vector<std::string> keys_without_effects() {
  return {"study",
          "platform",
          "workers",
          "model",
          "compute",
          "strategy",
          "steps",
          "network",
          "sweep",
          "learning",
          "dataset.tokens",
          "noise.trace",
          "price",
          "price.node_hour",
          "price.device_hour",
          "power",
          "power.device",
          "power.node",
          "power.overhead",
          "power.intensity",
          "failures.node_mtbf",
          "failures.checkpoint",
          "failures.write",
          "failures.restart",
          "collective.calibration",
          "collective.calibration.library"};
}

}  // namespace epocast::conformance
