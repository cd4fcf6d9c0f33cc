#pragma once
// What a device holds while it works through the passes of its layers: which tensors are alive when, and the peak.
//
// Model: a tensor is alive from the pass that makes it to the last one that reads it, and memory is reused at once, so
// that fragmentation and caching allocators come on top. Parameters, their gradients and the optimizer's state are
// there all the time. Views and activations in place share their input's memory. The gradient of an activation is alive
// from the first backward pass that makes a part of it to the backward pass of the layer that made the activation.
// Further parts, of other readers, are made beside it and added. Where layers hand the gradient on unchanged
// (additions, views) their inputs share it as long as nobody changes it; activations in place change it in place. What
// is kept for backward in the host's memory is away from the last reader of the forward pass to the first after that,
// but for so much that is on its way.

#include <string>
#include <vector>

#include "sim/memory.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

enum class Pass { forward, recompute, backward, update };

const char* to_string(Pass pass);

/// Memory while one pass of one layer runs, what it makes and its workspace included.
struct MemoryMoment {
  Pass pass = Pass::forward;
  std::size_t layer = 0;  ///< index into WorkloadTrace::layers
  MemoryUse use;
};

/// Neighbouring layers on one device, and how much of them it holds at once.
struct StageRange {
  std::size_t first = 0;    ///< index into WorkloadTrace::layers
  std::size_t last = 0;     ///< inclusive
  int in_flight = 1;        ///< micro-batches, each the trace's batch, that are between forward and backward at most
  int weight_versions = 1;  ///< copies of the parameters, as PipeDream's weight stashing keeps
};

/// All passes in running order: forward, backward (each segment's recomputation before its backward), update. Of the
/// micro-batches in flight one runs, the others hold what they keep from forward to backward. What a stage reads from
/// layers before it is counted as received: alive from its first reader on. The moments' `use.moment` stays empty.
/// REQUIRES first <= last < layers.size(), in_flight and weight_versions >= 1.
std::vector<MemoryMoment> memory_timeline(const WorkloadTrace& trace, Optimizer optimizer, const StageRange& stage);

/// Of the whole network.
std::vector<MemoryMoment> memory_timeline(const WorkloadTrace& trace, Optimizer optimizer);

/// Of what layers [first, last] read from layers before them, what stays in memory from forward to backward.
Bytes kept_of_received(const WorkloadTrace& trace, std::size_t first, std::size_t last);

/// By layer, what of its own stays in memory from forward to backward: what a backward or a second forward pass reads.
std::vector<Bytes> kept_by_layer(const WorkloadTrace& trace);

}  // namespace epocast
