#pragma once
// Activation checkpointing: memory for time. The network is cut into segments of neighbouring layers. Of a segment only
// what layers outside of it read stays in memory; before its backward passes, what they need is computed again. The
// last segment keeps everything, as its backward passes come first.
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

/// Sets segments, recompute times and kept activations of a trace that has none of them yet. Convolutions and all other
/// layers are computed again at the cost of their forward pass, unless nobody needs what they make.
void apply_recompute(WorkloadTrace& trace, const Recompute& recompute);

}  // namespace epocast
