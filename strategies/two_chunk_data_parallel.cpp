#include "strategies/two_chunk_data_parallel.hpp"

#include <fmt/format.h>

#include <vector>

#include "strategies/layer_passes.hpp"
#include "strategies/worker_program.hpp"

namespace epocast {
namespace {

using enum CollectiveOp;
using enum CollectiveAlgorithm;

/// Which of a trace's layers do what.
struct Roles {
  std::size_t first_chunk = 0;        ///< this layer and all after it
  std::vector<bool> replicated;       ///< by layer
  std::vector<std::size_t> gathered;  ///< the replicated ones, in forward order
};

bool counts(LayerKind kind) { return multiplies_weights(kind) || kind == LayerKind::pooling; }

Roles assign_roles(const WorkloadTrace& trace, int k, int f, const ConfigNode& options) {
  Roles roles;
  roles.replicated.resize(trace.layers.size(), false);
  int counted = 0, fully_connected = 0;
  for (std::size_t l = trace.layers.size(); l-- > 0;)
    if (counts(trace.layers[l].kind) && ++counted == k) roles.first_chunk = l;
  if (counted < k)
    throw options.at("k").error(fmt::format(
        "{} layers in the first chunk, but '{}' has {} that count (with weights, and pooling); set k to at most {}", k,
        trace.model, counted, counted));
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    if (trace.layers[l].kind == LayerKind::fully_connected && ++fully_connected <= f) {
      roles.replicated[l] = true;
      roles.gathered.push_back(l);
    }
  if (fully_connected < f)
    throw options.at("f").error(
        fmt::format("{} replicated layers, but '{}' has {} fully connected; set f to at most {}", f, trace.model,
                    fully_connected, fully_connected));
  return roles;
}

/// Gradients of layers [first, last) that are reduced.
Bytes chunk_bytes(const WorkloadTrace& trace, const Roles& roles, std::size_t first, std::size_t last) {
  Bytes bytes;
  for (std::size_t l = first; l < last; ++l)
    if (!roles.replicated[l])
      for (const GradientTensor& gradient : trace.layers[l].gradients) bytes += gradient.bytes;
  return bytes;
}

}  // namespace

EntryInfo TwoChunkDataParallel::info() {
  return {"two_chunk_data_parallel",
          "data parallelism with two all-reduces, and replicated gradients of fully connected layers (Lee 2020)",
          {{"k", "layers", ">= 1", "required", "layers in the first chunk, from the output on, pooling included"},
           {"f", "layers", ">= 0", "0", "fully connected layers whose gradients every worker computes itself"},
           CommunicationCores::parameter()}};
}

TwoChunkDataParallel::TwoChunkDataParallel(const ConfigNode& options)
    : options_(options),
      first_chunk_layers_(static_cast<int>(options.at("k").as_int(Range{1, 1e6}))),
      replicated_layers_(static_cast<int>(options.get("f", 0, Range{0, 1e6}))),
      cores_(options) {}

TrainingStep TwoChunkDataParallel::compile(const StrategyContext& context) const {
  const WorkloadTrace trace = cores_.slowed_trace(context, context.worker_batch());
  const std::vector<LayerTrace>& layers = trace.layers;
  const Roles roles = assign_roles(trace, first_chunk_layers_, replicated_layers_, options_);
  std::vector<LayerTrace> whole_batch;  // for replicated gradients
  if (!roles.gathered.empty()) whole_batch = cores_.slowed_trace(context, context.global_batch).layers;
  const auto workers = static_cast<double>(context.workers.size());

  TrainingStep step;
  WorkerProgram program(step.graph, context, false);
  std::vector<std::size_t> delayed_update(layers.size());  // point of the program
  std::vector<std::optional<TaskId>> activations(layers.size()), errors(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (roles.replicated[l]) {
      activations[l] =
          program.post(all_gather, ring, input_bytes(trace, l) * workers, {"all-gather activations", layers[l].name});
      delayed_update[l] = program.here();
      program.compute(whole_batch[l].times.backward_weights, {"gradient", layers[l].name});
      program.compute(layers[l].times.update, {"update", layers[l].name});
    }
    program.compute(layers[l].times.forward, {"forward", layers[l].name});
  }
  std::optional<TaskId> first, second;
  for (std::size_t l = layers.size(); l-- > 0;) {
    const LayerTimes& times = layers[l].times;
    program.compute((roles.replicated[l] ? times.recompute + times.backward_data : times.backward()),
                    {"backward", layers[l].name});
    if (l == roles.first_chunk)
      first = program.post_all_reduce(chunk_bytes(trace, roles, l, layers.size()), {"all-reduce", "chunk 1"});
  }
  second = program.post_all_reduce(chunk_bytes(trace, roles, 0, roles.first_chunk), {"all-reduce", "chunk 2"});
  program.wait(first);
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (!roles.replicated[l]) program.compute(layers[l].times.update, {"update", layers[l].name});
    if (l != roles.first_chunk) continue;
    program.wait(second);
    for (const std::size_t g : roles.gathered)
      errors[g] = program.post(all_gather, ring, layers[g].output * workers, {"all-gather errors", layers[g].name});
  }
  for (const std::size_t g : roles.gathered) {
    program.wait_for_previous(delayed_update[g], activations[g]);
    program.wait_for_previous(delayed_update[g], errors[g]);
  }
  program.close();

  MemoryUse memory = replica_memory(trace, context.optimizer);
  for (const std::size_t g : roles.gathered) memory.activations += (input_bytes(trace, g) + layers[g].output) * workers;
  step.memory.push_back({"worker", context.workers, memory});
  return step;
}

}  // namespace epocast
