#pragma once
// The options with which every strategy is put through the conformance suite. A strategy that is not in the table, or
// an option word that appears in no variant, fails the suite: add your strategy here.

#include <map>
#include <string>
#include <vector>

#include "sim/strategy.hpp"

namespace epocast::conformance {

struct Variant {
  std::string options;  ///< YAML
  CollectiveSettings collective = {};
  int min_workers = 1;                      ///< fewer must be refused
  int max_workers = 64;                     ///< more must be refused
  std::vector<int> workers = {1, 2, 4, 5};  ///< to run with, as far as these limits allow
};

inline std::map<std::string, std::vector<Variant>> strategy_variants() {
  using A = CollectiveAlgorithm;
  using L = CollectiveLevel;
  std::map<std::string, std::vector<Variant>> table;

  table["single"] = {{.options = "{}", .max_workers = 1}};

  std::vector<Variant>& data_parallel = table["data_parallel"];
  for (const char* granularity : {"tensor", "layer", "bucket, bucket: 10 MB", "model"})
    for (const char* overlap : {"true", "false"})
      data_parallel.push_back({.options = std::string("{granularity: ") + granularity + ", overlap: " + overlap + "}"});
  for (const CollectiveSettings settings : {CollectiveSettings{A::ring, L::flow, 1e-10},
                                            {A::ring, L::message, 1e-10},
                                            {A::ring, L::closed_form, 1e-10},
                                            {A::halving_doubling, L::automatic, 1e-10},
                                            {A::recursive_doubling, L::flow, 0},
                                            {A::double_binary_tree, L::automatic, 1e-10},
                                            {A::binomial_tree, L::automatic, 0},
                                            {A::hierarchical, L::automatic, 0},
                                            {A::multi_ring, L::automatic, 0},
                                            {A::automatic, L::automatic, 0},
                                            {A::automatic, L::flow, 1e-10},
                                            {A::nccl, L::automatic, 0},
                                            {A::mpi, L::automatic, 1e-10}})
    data_parallel.push_back({.options = "{granularity: layer}", .collective = settings});
  // What is fused is of other sizes, for which a choice may be another.
  for (const L level : {L::automatic, L::flow, L::message})
    data_parallel.push_back(
        {.options = "{granularity: cycle, cycle: 2 ms}", .collective = CollectiveSettings{A::automatic, level, 1e-10}});

  for (const char* options :
       {"{granularity: bucket, first_bucket: 1 MB, bucket: 10 MB}", "{granularity: cycle, cycle: 4 ms, bucket: 10 MB}",
        "{granularity: layer, order: priority, update: before_forward}", "{order: fifo, update: after_backward}",
        "{granularity: tensor, order: priority, update: before_forward, accumulation: 4}", "{accumulation: 8}",
        "{update: before_forward, overlap: false}", "{update: after_all}", "{compression: none}", "{compression: fp16}",
        "{granularity: layer, compression: int8, update: before_forward}", "{compression: one_bit, overlap: false}",
        "{granularity: tensor, compression: top_k, top_k: 0.1}", "{bucket: 1 MB, at_once: 3}",
        "{granularity: layer, at_once: 2, overlap: false}"})
    data_parallel.push_back({.options = options});

  std::vector<Variant>& sharded = table["sharded_data_parallel"];
  for (const char* options :
       {"{stage: 1}", "{stage: 2, unit: 1 MB}", "{stage: 3}", "{stage: 3, unit: 1 B, prefetch: 0}",
        "{stage: 3, unit: 4 MB, prefetch: 2, reshard: false}",
        "{stage: 3, unit: 4 MB, reshard: true, communication_cores: 0}", "{stage: 1, unit: 4 MB, accumulation: 4}",
        "{stage: 2, unit: 4 MB, accumulation: 2}", "{stage: 3, unit: 4 MB, accumulation: 2}",
        "{stage: 1, unit: block, overlap: false, overlap_gathers: false}",
        "{stage: 2, unit: 4 MB, accumulation: 2, overlap: false}", "{stage: 1, unit: 4 MB, overlap_gathers: false}",
        "{stage: 3, unit: 4 MB, overlap: false, accumulation: 2}",
        "{stage: 2, unit: block, overlap: true, overlap_gathers: true}"})
    sharded.push_back({.options = options});
  for (const CollectiveSettings settings :
       {CollectiveSettings{A::halving_doubling, L::flow, 1e-10}, {A::double_binary_tree, L::message, 1e-10}})
    sharded.push_back({.options = "{unit: 4 MB}", .collective = settings});

  for (const char* options : {"{stage: 1, compression: fp16}", "{stage: 2, unit: 1 MB, compression: int8}",
                              "{stage: 3, unit: 4 MB, compression: top_k, top_k: 0.1}",
                              "{stage: 1, unit: 4 MB, compression: one_bit}", "{stage: 3, compression: none}"})
    sharded.push_back({.options = options, .workers = {1, 4}});

  for (const char* options :
       {"{period: 1}", "{period: 4, bucket: 5 MB}", "{period: 4, overlap: true}", "{overlap: false}"})
    table["local_sgd"].push_back({.options = options});
  std::vector<Variant>& layerwise = table["layerwise_data_parallel"];
  for (const std::string gradients : {"all_reduce", "reduce_scatter", "all_to_all", "pcnn"})
    for (const std::string overlap : {"none", "backward", "next_forward"})
      layerwise.push_back({.options = "{gradients: " + gradients + ", overlap: " + overlap + "}"});
  layerwise.push_back(
      {.options = "{gradients: pcnn, communication_cores: 1}", .collective = {A::halving_doubling, L::flow, 1e-10}});
  layerwise.push_back({.options = "{gradients: pcnn}", .collective = {A::ring, L::message, 1e-10}});

  // Without shapes, operators can be divided by samples only.
  for (const char* exchange : {"all_reduce", "host_server, server_rate: 3 GB/s", "device_servers", "sharded_servers"})
    for (const char* overlap : {"true", "false"})
      table["layerwise"].push_back(
          {.options = std::string("{placement: packed, exchange: ") + exchange + ", overlap: " + overlap + "}"});
  table["layerwise"].push_back(
      {.options =
           "{configuration: {conv1: {n: 1}, fc1: {n: 2, devices: [1, 3]}}, placement: spread, exchange: all_reduce}",
       .min_workers = 4,
       .max_workers = 4,
       .workers = {4}});
  table["layerwise"].push_back({.options = "{configuration: search, bandwidth: 1 GB/s}", .workers = {1, 4}});

  // Nor has a network without shapes single operations.
  for (const char* method : {"best, search: 1e4", "pardnn, search: 1e4", "pardnn_literal", "round_robin",
                             "linear_clustering", "heft", "in_turn, latency: 10 us", "single"})
    table["operators"].push_back(
        {.options = std::string("{nodes: passes, bandwidth: 1 GB/s, method: ") + method + "}", .workers = {1, 2, 5}});
  for (const CollectiveSettings settings :
       {CollectiveSettings{A::ring, L::flow, 1e-10}, {A::halving_doubling, L::message, 0}})
    table["operators"].push_back({.options = "{nodes: passes, bandwidth: 1 GB/s, method: heft, devices: 2}",
                                  .collective = settings,
                                  .min_workers = 2,
                                  .workers = {2, 4}});

  std::vector<Variant>& two_chunk = table["two_chunk_data_parallel"];
  for (const char* options : {"{k: 1, communication_cores: 1}", "{k: 2, f: 1}", "{k: 3, f: 2}", "{k: 4, f: 2}"})
    two_chunk.push_back({.options = options});
  two_chunk.push_back({.options = "{k: 3, f: 1}", .collective = {A::ring, L::message, 1e-10}});

  std::vector<Variant>& parameter_server = table["parameter_server"];
  for (const std::string mode : {"sync", "async"}) {
    parameter_server.push_back({.options = "{mode: " + mode + "}"});
    parameter_server.push_back({.options = "{mode: " + mode + ", location: colocated}"});
    for (const std::string placement : {"greedy", "round_robin", "even"})
      for (const std::string location : {"dedicated", "colocated"})
        for (const std::string granularity : {"layer", "model"})
          parameter_server.push_back({.options = "{mode: " + mode + ", servers: 2, placement: " + placement +
                                                 ", location: " + location + ", granularity: " + granularity + "}",
                                      .min_workers = location == "colocated" ? 2 : 1,
                                      .max_workers = location == "colocated" ? 64 : 62,
                                      .workers = {2, 5}});
  }

  // The synthetic network has five layers that take time: at most five stages.
  parameter_server.push_back({.options = "{overlap: step, servers: 2}", .workers = {2, 5}});

  std::vector<Variant>& pipeline = table["pipeline"];
  for (const std::string schedule :
       {"naive", "gpipe", "1f1b", "zb_h1", "zb_h2, micro_batches: 4", "pipedream", "2bw", "threaded"}) {
    pipeline.push_back({.options = "{schedule: " + schedule + "}", .max_workers = 5});
    pipeline.push_back({.options = "{stages: 2, placement: stage_major, schedule: " + schedule + "}",
                        .min_workers = 2,
                        .workers = {2, 4}});
  }
  for (const std::string granularity : {"tensor", "layer", "bucket, bucket: 10 MB", "model"})
    for (const std::string overlap : {"true", "false"})
      pipeline.push_back({.options = "{stages: 2, granularity: " + granularity + ", overlap: " + overlap + "}",
                          .min_workers = 2,
                          .workers = {4}});
  for (const std::string encoding : {"none", "fp16", "int8", "one_bit", "top_k"})
    pipeline.push_back({.options = "{stages: 2, granularity: layer, order: priority, compression: " + encoding + "}",
                        .min_workers = 2,
                        .workers = {4}});
  pipeline.push_back(
      {.options = "{stages: 2, granularity: cycle, cycle: 2 ms, order: fifo}", .min_workers = 2, .workers = {4}});
  pipeline.push_back({.options = "{stages: 2, schedule: zb_h1, granularity: layer}", .min_workers = 2, .workers = {4}});
  pipeline.push_back({.options = "{schedule: interleaved}", .max_workers = 2});
  pipeline.push_back({.options = "{schedule: interleaved, virtual_stages: 5, micro_batches: 4}", .max_workers = 1});
  for (const char* schedule : {"gpipe", "1f1b", "interleaved"})
    pipeline.push_back({.options = std::string("{stages: 2, blocking_messages: true, schedule: ") + schedule + "}",
                        .min_workers = 2,
                        .workers = {2, 4}});
  pipeline.push_back({.options = "{stages: 2, blocking_messages: false}", .min_workers = 2, .workers = {2}});
  pipeline.push_back({.options = "{schedule: threaded, in_flight: 3}", .max_workers = 5});
  // Stages with unequal numbers of replicas; 3 and 2 do not share samples at the same places.
  for (const std::string schedule : {"gpipe", "1f1b", "zb_h1", "pipedream", "2bw", "threaded, in_flight: 3"}) {
    pipeline.push_back({.options = "{replicas: [2, 1], schedule: " + schedule + "}",
                        .min_workers = 3,
                        .max_workers = 3,
                        .workers = {3}});
    pipeline.push_back({.options = "{replicas: [3, 2, 1], granularity: layer, schedule: " + schedule + "}",
                        .min_workers = 6,
                        .max_workers = 6,
                        .workers = {6}});
  }
  pipeline.push_back({.options =
                          "{replicas: [1, 4], schedule: interleaved, micro_batches: 2, placement: replica_major, "
                          "recompute: true, copy_rate: 2 GB/s}",
                      .collective = {A::ring, L::message, 1e-10},
                      .min_workers = 5,
                      .max_workers = 5,
                      .workers = {5}});
  pipeline.push_back({.options = "{replicas: auto, split_bandwidth: 10 Gb/s}", .workers = {1, 4}});
  pipeline.push_back(
      {.options = "{replicas: auto, split_bandwidth: 1 Gb/s, stages: 2}", .min_workers = 2, .workers = {2, 5}});
  for (const std::string split : {"time", "time_only", "bisection", "even"})
    pipeline.push_back({.options = "{micro_batches: 2, split: " + split + "}", .max_workers = 5, .workers = {3, 4}});
  pipeline.push_back(
      {.options = "{split: time, split_bandwidth: 10 Gb/s, copy_rate: 2 GB/s}", .max_workers = 5, .workers = {3}});
  pipeline.push_back({.options = "{first_layers: [conv2, fc2]}", .min_workers = 3, .max_workers = 3, .workers = {3}});
  for (const std::string gradients : {"collocated", "one_processor"})
    pipeline.push_back({.options = "{schedule: naive, gradients: " + gradients + "}", .max_workers = 5});
  for (const std::string recompute : {"true", "false"})
    pipeline.push_back({.options = "{recompute: " + recompute + "}", .max_workers = 5, .workers = {4}});
  for (const CollectiveSettings settings : {CollectiveSettings{A::ring, L::message, 1e-10},
                                            {A::ring, L::closed_form, 1e-10},
                                            {A::halving_doubling, L::automatic, 1e-10}})
    pipeline.push_back({.options = "{stages: 2, placement: replica_major}",
                        .collective = settings,
                        .min_workers = 2,
                        .workers = {4, 6}});

  std::vector<Variant>& filter_parallel = table["filter_parallel"];
  for (const std::string exchange : {"direct", "root"})
    for (const std::string in_flight : {"1", "3"})
      filter_parallel.push_back({.options = "{exchange: " + exchange + ", in_flight: " + in_flight + "}"});
  filter_parallel.push_back(
      {.options = "{parts: {conv1: [1, 0], relu1: [1, 0], conv2: [3, 1], flatten: [3, 1], fc1: [1, 2], fc2: [0, 1]}, "
                  "in_flight: 2, volume: 1 MB, copy_rate: 2 GB/s}",
       .min_workers = 2,
       .max_workers = 2});

  filter_parallel.push_back({.options = "{shares: [2, 3, 2], volume: 300 kB, in_flight: 2}",
                             .min_workers = 3,
                             .max_workers = 3,
                             .workers = {3}});
  for (const char* connection : {"concurrent", "in_order", "priority"})
    for (const char* mode : {"sync", "async"})
      parameter_server.push_back({.options = std::string("{mode: ") + mode + ", connection: " + connection +
                                             ", overlap: true, copy_rate: 2 GB/s, message_overhead: 10 us, "
                                             "server_rate: 3 GB/s, server_threads: 2, communication_cores: 4}",
                                  .workers = {1, 3}});
  for (const char* staleness : {"0", "2", "infinite"})
    parameter_server.push_back(
        {.options = std::string("{mode: stale, staleness: ") + staleness + ", overlap: false}", .workers = {1, 4}});
  for (const char* overlap : {"true", "false"})
    parameter_server.push_back({.options = std::string("{mode: backup, backup: 1, overlap: ") + overlap + "}",
                                .min_workers = 2,
                                .workers = {2, 5}});
  parameter_server.push_back(
      {.options = "{mode: async, servers: all, location: device, placement: even}", .workers = {1, 4}});
  parameter_server.push_back({.options = "{servers: all, server_cores: 2}", .workers = {3}});
  for (const char* options :
       {"{granularity: tensor, servers: 2, overlap: push, by_node: false, requests: concurrent}",
        "{mode: async, overlap: push}", "{by_node: true, granularity: tensor}",
        "{by_node: true, overlap: step, servers: 2, copy_rate: 2 GB/s, server_rate: 3 GB/s}",
        "{granularity: model, requests: one_at_a_time}",
        "{mode: async, granularity: model, overlap: false, requests: one_at_a_time, reply_buffer: 10 kB}"})
    parameter_server.push_back({.options = options, .workers = {1, 4}});

  for (const char* rule :
       {"downpour", "agn", "adag", "async_momentum", "async_local_sgd", "model_averaging", "easgd", "aeasgd"})
    table[rule] = {{.options = "{period: 3}", .workers = {1, 4}},
                   {.options = "{placement: greedy, location: dedicated, connection: concurrent, requests: concurrent}",
                    .workers = {2}},
                   {.options = "{requests: one_at_a_time, reply_buffer: 10 kB}", .workers = {2}},
                   {.options = "{placement: round_robin, location: device, connection: priority}", .workers = {2}},
                   {.options = "{servers: 2, placement: even, location: colocated, connection: in_order}",
                    .min_workers = 2,
                    .workers = {3}}};
  for (const char* topology : {"ring", "exponential"})
    for (const char* overlap : {"true", "false"})
      table["gossip"].push_back(
          {.options = std::string("{period: 2, topology: ") + topology + ", overlap: " + overlap + "}",
           .min_workers = 2,
           .workers = {2, 5}});
  // What is sent of parameters can be encoded under every synchronisation.
  for (const char* compression : {"none", "fp16", "int8", "one_bit", "top_k"}) {
    const std::string encoded = std::string("compression: ") + compression + "}";
    table["local_sgd"].push_back({.options = "{period: 2, " + encoded, .workers = {1, 4}});
    table["local_sgd"].push_back({.options = "{period: 1, overlap: true, bucket: 5 MB, " + encoded, .workers = {5}});
    table["gossip"].push_back({.options = "{topology: ring, " + encoded, .min_workers = 2, .workers = {4}});
    table["parameter_server"].push_back(
        {.options = "{mode: async, server_rate: 3 GB/s, " + encoded, .workers = {1, 3}});
    table["parameter_server"].push_back({.options = "{overlap: false, servers: 2, " + encoded, .workers = {2}});
    for (const char* rule :
         {"downpour", "agn", "adag", "async_momentum", "async_local_sgd", "model_averaging", "easgd", "aeasgd"})
      table[rule].push_back({.options = "{period: 2, " + encoded, .workers = {3}});
  }
  table["hogwild"] = {{.options = "{memory_bandwidth: 50 GB/s}", .max_workers = 1}};  // one device per node here

  std::vector<Variant>& benchmark = table["collective_benchmark"];
  const std::pair<const char*, A> operations[] = {{"all_reduce", A::ring},
                                                  {"reduce_scatter", A::halving_doubling},
                                                  {"all_gather", A::bruck},
                                                  {"all_to_all", A::pairwise},
                                                  {"broadcast", A::double_binary_tree},
                                                  {"reduce", A::binomial_tree},
                                                  {"gather", A::binomial_tree},
                                                  {"scatter", A::pairwise}};
  for (const auto& [operation, algorithm] : operations)
    for (const L level : {L::automatic, L::flow, L::message})
      benchmark.push_back({.options = std::string("{bytes: 3 MB, operation: ") + operation + "}",
                           .collective = {algorithm, level, 1e-10},
                           .min_workers = 2});
  // Parts are combined in composition_test.cpp, on a network that can be divided.
  std::vector<Variant>& composition = table["composition"];
  composition.push_back({.options = "{mesh: {data: rest}}"});
  composition.push_back({.options = "{mesh: {data: rest}, body: whole, synchronisation: sharded}"});
  composition.push_back(
      {.options = "{mesh: {pipeline: 2, data: rest}, schedule: {name: gpipe, micro_batches: 2, split: even}}",
       .min_workers = 2,
       .workers = {2, 4}});
  for (const char* options :
       {"{mesh: {data: rest, tensor: 2}, schedule: {name: threaded, in_flight: 3, copy_rate: 2 GB/s}, body: {name: "
        "filters, exchange: direct}}",
        "{mesh: {tensor: 2, data: rest}, body: {name: filters, exchange: root}, synchronisation: all_reduce}",
        "{mesh: {data: rest, tensor: 2}, body: {name: operators, nodes: passes, bandwidth: 1 GB/s, method: "
        "round_robin}}",
        "{mesh: {tensor: 2, data: rest}, body: {name: operators, nodes: passes, bandwidth: 1 GB/s, method: in_turn}}"})
    composition.push_back(
        {.options = options, .collective = {A::ring, L::flow, 1e-10}, .min_workers = 2, .workers = {2, 4}});
  composition.push_back(
      {.options =
           "{mesh: {tensor: 4}, schedule: {name: gpipe, micro_batches: 1}, body: {name: layerwise, rest: {n: 2}, "
           "configuration: {conv1: {n: 4}}, exchange: sharded_servers}}",
       .min_workers = 4,
       .max_workers = 4,
       .workers = {4}});
  for (const char* preset : {"ddp", "zero1", "zero2"}) table[preset] = {{.options = "{}"}};
  table["ddp"].push_back({.options =
                              "{bucket: 10 MB, first_bucket: 1 MB, overlap: true, order: fifo, update: after_all, "
                              "accumulation: 2, compression: none, communication_cores: 0}"});
  table["ddp"].push_back({.options = "{compression: top_k, top_k: 0.1}"});
  table["horovod"] = {{.options = "{cycle: 2 ms, bucket: 10 MB, overlap: true, order: fifo, update: after_backward, "
                                  "accumulation: 2, compression: top_k, top_k: 0.1, communication_cores: 0}"}};
  for (const char* preset : {"zero1", "zero2"})
    table[preset].push_back({.options = "{unit: 4 MB, communication_cores: 0}"});
  for (const char* preset : {"fsdp", "zero3"})
    table[preset] = {{.options = "{unit: 4 MB, prefetch: 2, reshard: false, communication_cores: 0}"}};
  table["gpipe"] = {{.options = "{stages: 2, micro_batches: 4}", .min_workers = 2, .workers = {2, 4}}};
  table["pipedream"] = {{.options = "{stages: 2}", .min_workers = 2, .workers = {2, 4}}};
  for (const char* preset : {"distributed_replicated", "dist_device_sync"})
    table[preset] = {{.options = "{placement: greedy, location: dedicated, connection: concurrent}", .workers = {1, 4}},
                     {.options = "{servers: 2, placement: round_robin, location: device, connection: priority}",
                      .min_workers = 2,
                      .workers = {4}},
                     {.options = "{placement: even, location: colocated, connection: in_order}", .workers = {4}}};
  for (const char* overlap : {"true", "false", "push", "step"})
    table["dist_device_sync"].push_back({.options = std::string("{overlap: ") + overlap + "}", .workers = {4}});
  table["megatron"] = {
      {.options = "{pipeline: 2, tensor: 1, micro_batches: 4, sequence_parallel: false, distributed_optimizer: true}",
       .min_workers = 2,
       .workers = {2, 4}},
      {.options = "{pipeline: 2, micro_batches: 4, virtual_stages: 2}", .min_workers = 2, .workers = {2, 4}}};
  return table;
}

}  // namespace epocast::conformance
