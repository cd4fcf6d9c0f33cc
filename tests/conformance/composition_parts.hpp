#pragma once
// What compositions of small transformers on eight devices are put together from.

#include <vector>

namespace epocast::conformance {

struct MeshPart {
  const char* mesh;
  std::vector<const char*> bodies;  ///< none: whole layers
  bool pipeline = false, data = true, mixture = false;
};

inline const std::vector<MeshPart>& mesh_parts() {
  static const std::vector<const char*> none{""};
  static const std::vector<const char*> tensor{"{name: tensor}", "{name: tensor, sequence_parallel: true}",
                                               "{name: tensor, sequence_parallel: true, gather_again: false}"};
  static const std::vector<MeshPart> meshes{
      {"{data: 8}", none},
      {"{tensor: 4, data: 2}", tensor},
      {"{data: 2, tensor: 4}", tensor},
      {"{pipeline: 4, data: 2}", none, true},
      {"{data: 2, pipeline: 4}", none, true},
      {"{pipeline: 2, data: 2, tensor: 2}", tensor, true},
      {"{tensor: 2, pipeline: 2, data: 2}", tensor, true},
      {"{pipeline: 2, tensor: 4}", tensor, true, false},
      {"{tensor: 2, data: 4}", {"filters"}},
      {"{data: 2, context: 4}", {"context", "{name: context, exchange: all_gather}"}},
      {"{context: 2, data: 2, tensor: 2}", {"[context, {name: tensor, sequence_parallel: true}]"}},
      {"{data: 2, pipeline: 2, context: 2}", {"context"}, true},
      {"{data: 2, expert: 4}", {"experts", "{name: experts, capacity: 1.25}"}, false, true, true},
      {"{expert: 2, pipeline: 2, data: 2}", {"experts"}, true, true, true},
      {"{data: 2, expert: 2, tensor: 2}", {"[{name: tensor, sequence_parallel: true}, experts]"}, false, true, true},
      {"{pipeline: 2, context: 2, expert: 2}", {"[context, experts]"}, true, true, true}};
  return meshes;
}

inline const std::vector<const char*>& pipeline_schedules() {
  static const std::vector<const char*> schedules{"gpipe, micro_batches: 4",
                                                  "1f1b, micro_batches: 4",
                                                  "interleaved, micro_batches: 4",
                                                  "zb_h1, micro_batches: 4",
                                                  "zb_h2, micro_batches: 4",
                                                  "2bw, micro_batches: 4",
                                                  "naive",
                                                  "pipedream",
                                                  "threaded, in_flight: 2"};
  return schedules;
}

inline const std::vector<const char*>& single_stage_schedules() {
  static const std::vector<const char*> schedules{"1f1b", "1f1b, micro_batches: 2", "gpipe, micro_batches: 2"};
  return schedules;
}

inline const std::vector<const char*>& synchronisations() {
  static const std::vector<const char*> synchronisations{
      "{name: all_reduce, bucket: 100 kB}",
      "{name: all_reduce, granularity: layer, overlap: false}",
      "{name: all_reduce, granularity: tensor, order: priority}",
      "{name: all_reduce, compression: fp16}",
      "{name: all_reduce, compression: int8}",
      "{name: all_reduce, granularity: layer, compression: top_k}",
      "{name: sharded, stage: 1}",
      "{name: sharded, stage: 2, unit: 50 kB}",
      "{name: sharded, stage: 3, unit: 50 kB}",
      "{name: sharded, stage: 3, unit: 50 kB, prefetch: 2, reshard: false}",
      "{name: sharded, stage: 2, unit: 50 kB, shards: 2}",
      "{name: average, period: 3, bucket: 100 kB}",
      "{name: average, period: 2, overlap: true}",
      "{name: gossip, period: 1}",
      "{name: gossip, period: 2, topology: exponential, overlap: false}",
      "{name: parameter_server, location: colocated}",
      "{name: parameter_server, servers: 2, placement: even}",
      "{name: parameter_server, mode: async, granularity: model, server_rate: 1 GB/s}",
      "{name: parameter_server, mode: async, servers: all, overlap: false}",
      "{name: parameter_server, mode: stale, copy_rate: 2 GB/s}",
      "{name: downpour, period: 2}",
      "{name: agn, period: 1, servers: 2, location: device}",
      "{name: async_local_sgd, period: 1}",
      "{name: model_averaging, period: 2, location: colocated}",
      "{name: easgd, period: 2}",
      "{name: aeasgd, period: 3, servers: all, placement: round_robin}",
      "{name: sharded, stage: 2, unit: 50 kB, compression: int8}",
      "{name: sharded, stage: 3, unit: 50 kB, compression: fp16}",
      "{name: average, period: 2, compression: top_k}",
      "{name: average, period: 1, overlap: true, compression: fp16}",
      "{name: gossip, period: 1, compression: one_bit}",
      "{name: parameter_server, location: colocated, compression: fp16}",
      "{name: easgd, period: 1, compression: int8}",
      "{name: partial_gradients, gradients: reduce_scatter}",
      "{name: partial_gradients, gradients: pcnn, overlap: backward}",
      "{name: partial_gradients, gradients: pcnn, overlap: none}",
      "{name: two_chunks, k: 3}",
      "{name: two_chunks, k: 8}"};
  return synchronisations;
}

}  // namespace epocast::conformance
