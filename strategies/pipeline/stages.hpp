#pragma once
// A network cut into chunks of consecutive layers, and what each chunk costs.

#include <string>
#include <vector>

#include "sim/memory.hpp"
#include "sim/workload_trace.hpp"
#include "strategies/pipeline/schedule.hpp"

namespace epocast {

enum class SplitRule {
  time,       ///< the slowest chunk is as fast as possible (strategies/partitioners/contiguous_split.hpp)
  bisection,  ///< each range of layers is halved by computation, again and again (Eserol 2019, section 5.1.1)
  even,       ///< equally many layers that take time
};

/// Consecutive layers of the trace on one stage, for one micro-batch. Layers are in topological order; what crosses a
/// boundary is everything that later layers read, whether the next stage itself reads it or hands it on.
struct Chunk {
  std::size_t first = 0, last = 0;  ///< layers [first, last)
  int stage = 0;
  std::string name;  ///< "stage 2", or "stage 2 chunk 1"
  Seconds forward, backward_data, backward_weights;
  Seconds update;     ///< of all its parameters, once
  Bytes parameters;   ///< of its layers
  Bytes activations;  ///< kept for the backward pass, what comes in included
  Bytes received;     ///< activations from the chunk before
  Bytes sent;         ///< activations to the chunk after; as many bytes of gradients come back
};

/// Boundaries: first layer of every chunk, then the number of layers. Layers that take no time go with their
/// neighbours. `bandwidth` matters to SplitRule::time only.
/// Throws SplitError (contiguous_split.hpp) if there are fewer layers that take time than chunks.
std::vector<std::size_t> split_layers(const WorkloadTrace& trace, int chunks, SplitRule rule, BytesPerSecond bandwidth);

/// The chunks between these boundaries, chunk c on stage c mod stages.
std::vector<Chunk> make_chunks(const WorkloadTrace& trace, const std::vector<std::size_t>& boundaries, int stages);

/// What a device of one stage holds at its peak. `program` is its work for one batch; `versions` of its weights, the
/// current one included. With `recompute` only what comes in is kept from the forward pass to the backward pass.
MemoryUse stage_memory(const std::vector<Chunk>& chunks, int stage, const StageProgram& program, int versions,
                       bool recompute, Optimizer optimizer, Precision precision);

}  // namespace epocast
