#pragma once
// A network cut into chunks of consecutive layers, and what each chunk costs.

#include <string>
#include <string_view>
#include <vector>

#include "sim/memory.hpp"
#include "sim/workload_trace.hpp"

namespace epocast {

enum class SplitRule {
  time,       ///< of what fits in memory, the slowest chunk is as fast as possible (strategies/step/layout.hpp)
  time_only,  ///< the same, whatever the memory
  bisection,  ///< each range of layers is halved by computation, again and again (Eserol 2019, section 5.1.1)
  even,       ///< equally many layers that take time
  blocks,     ///< equally many copies of the block that the network repeats
};

/// What a pass has at its peak on top of what is kept and computed again: gradients of activations, workspace, and
/// activations that only it reads, or fewer of them than are kept at most.
struct PassPeaks {
  MemoryUse forward, backward;
};

/// Of layers [first, last).
PassPeaks pass_peaks(const WorkloadTrace& trace, std::size_t first, std::size_t last);

/// Consecutive layers of the trace on one stage, for one micro-batch. Layers are in topological order; what crosses a
/// boundary is everything that later layers read, whether the next stage itself reads it or hands it on.
struct Chunk {
  std::size_t first = 0, last = 0;  ///< layers [first, last)
  int stage = 0;
  std::string name;  ///< "stage 2", or "stage 2 chunk 1"
  DeviceTime forward, backward_data, backward_weights;
  DeviceTime recompute;  ///< of its layers' second forward passes, before the backward pass
  DeviceTime update;     ///< of all its parameters, once
  Bytes parameters;      ///< of its layers, such as are trained
  Bytes gradients;       ///< of its layers, as they travel
  Bytes frozen;          ///< of its layers, the others
  Bytes activations;     ///< kept from the forward to the backward pass, what comes in included
  Bytes recomputed;      ///< on top of them while a forward or backward pass runs: see LayerSums::recomputed
  Bytes offloaded;       ///< kept likewise, but in the host's memory
  Bytes staging;         ///< of that, what is on the device at least while a pass runs
  Bytes received;        ///< activations from the chunk before
  Bytes sent;            ///< activations to the chunk after; as many bytes of gradients come back
  PassPeaks peaks;
};

/// Sums over the layers before each boundary, and what crosses it: a chunk's bytes in a few operations.
class LayerSums {
 public:
  /// `at_once`: whether all segments that forget are computed again before the first of them is let go, as where the
  /// gradients of weights come later than those of activations.
  LayerSums(const WorkloadTrace& trace, bool at_once);
  Bytes parameters(std::size_t first, std::size_t last) const { return parameters_[last] - parameters_[first]; }
  Bytes gradients(std::size_t first, std::size_t last) const { return gradients_[last] - gradients_[first]; }
  Bytes frozen(std::size_t first, std::size_t last) const { return frozen_[last] - frozen_[first]; }
  /// Kept for the backward pass, without what comes in: on the device, and in the host's memory.
  Bytes kept(std::size_t first, std::size_t last) const { return kept_[last] - kept_[first]; }
  Bytes offloaded(std::size_t first, std::size_t last) const { return offloaded_[last] - offloaded_[first]; }
  /// What comes in.
  Bytes received(std::size_t first) const { return crossing_[first]; }
  /// Made again for the backward passes: by the largest segment, or all of them at once.
  Bytes recomputed(std::size_t first, std::size_t last) const;

 private:
  std::vector<Bytes> parameters_{Bytes(0)}, gradients_{Bytes(0)}, frozen_{Bytes(0)}, kept_{Bytes(0)},
      offloaded_{Bytes(0)}, crossing_{Bytes(0)}, recomputed_{Bytes(0)};
  std::vector<std::size_t> segment_ends_;  ///< ascending, one past the last layer of each; none if all are at once
};

/// An upper bound of pass_peaks in a few operations: what the whole network has on top at the worst of these layers.
class PassPeakBounds {
 public:
  explicit PassPeakBounds(const WorkloadTrace& trace);
  /// REQUIRES first < last.
  Bytes most(std::size_t first, std::size_t last) const;

 private:
  std::vector<std::vector<Bytes>> most_;  ///< by p and first layer, of 2^p layers
};

/// Of what comes in and what layers [first, last) keep in the host's memory, the largest two neighbours: what is on the
/// device while a layer reads one and writes the other.
Bytes largest_neighbours(const WorkloadTrace& trace, std::size_t first, std::size_t last, Bytes received);

/// Throws SplitError (contiguous_split.hpp) if there are fewer layers that take time than chunks.
void check_enough_layers(const WorkloadTrace& trace, int chunks);

/// Boundaries: first layer of every chunk, then the number of layers. Layers that take no time go with their
/// neighbours. Throw what check_enough_layers throws.
std::vector<std::size_t> halve_layers(const WorkloadTrace& trace, int chunks);
std::vector<std::size_t> divide_layers_evenly(const WorkloadTrace& trace, int chunks);

/// "layer.3" of "layer.3.norm_1", a copy of the block `layer`; empty for a layer outside of copies.
std::string_view block_copy(std::string_view name);

/// First layers of the copies of the block that the network repeats: of layer.0, layer.1, .. as model files name them.
/// None if no block has copies, or more than one block has.
std::vector<std::size_t> block_copies(const WorkloadTrace& trace);

/// Boundaries as above, each at the first layer of a copy. Chunks have equally many of them; where these do not divide,
/// those in the middle have one more than those at the ends, which have embeddings and losses besides. Throws
/// SplitError if there are fewer copies than chunks.
std::vector<std::size_t> divide_blocks_evenly(const WorkloadTrace& trace, int chunks);

/// The chunks between these boundaries, chunk c on stage c mod stages. `traces`, by stage, are at one replica's share
/// of a micro-batch. `at_once`: as LayerSums takes it.
std::vector<Chunk> make_chunks(const std::vector<const WorkloadTrace*>& traces,
                               const std::vector<std::size_t>& boundaries, bool at_once);

}  // namespace epocast
