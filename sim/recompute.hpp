#pragma once
// Activation checkpointing: memory for time. The network is cut into segments of neighbouring layers. Of a segment only
// what layers outside of it read stays in memory; before its backward passes its whole forward pass runs once more, as
// torch.utils.checkpoint does it: the last products too, though what they make was kept for the next segment. The last
// segment keeps everything, as its backward passes come first.
//
// This is a transform of the trace: strategies obey what the trace says, and know nothing of why.
//
// Source: Chen et al. 2016, "Training deep nets with sublinear memory cost" (arXiv 1604.06174): about sqrt(n) segments
// give a memory of O(sqrt(n)) for n layers, at the price of one more forward pass.

#include <cstddef>
#include <vector>

#include "sim/workload_trace.hpp"

namespace epocast {

struct Recompute {
  enum class Segments {
    none,    ///< keep everything
    sqrt,    ///< as many as the root of the number of layers that keep something
    blocks,  ///< cut wherever branches join and nothing but the joined tensor goes on
    count,
  };
  Segments segments = Segments::none;
  int count = 1;  ///< for Segments::count
};

/// First layers of all segments but the first, ascending. For `sqrt` and `count` segments keep about equally many
/// bytes: each cut lies within half a segment of its place, where the fewest bytes cross, and never between an
/// activation in place and its input. There may be fewer segments than asked for where single layers keep more than
/// their share, and none for `blocks` in a network without branches.
std::vector<std::size_t> segment_starts(const WorkloadTrace& trace, const Recompute& recompute);

/// Sets segments, recompute times and kept activations of a trace that forgets nothing yet.
void apply_recompute(WorkloadTrace& trace, const Recompute& recompute);

/// Makes all layers a single segment of which nothing but the model's input is kept: for devices that hold a part of
/// the network and keep what that part receives. Nothing where nothing is trained, as no backward pass would need it.
/// REQUIRES: !forgets(trace).
void forget_everything(WorkloadTrace& trace);

/// Whether some layers forget their activations.
bool forgets(const WorkloadTrace& trace);

}  // namespace epocast
