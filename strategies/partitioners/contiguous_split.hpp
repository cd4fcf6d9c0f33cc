#pragma once
// Optimal split of a network into pipeline stages of consecutive layers.
//
// Scope: layers in topological order; a stage is a range of them on one device or on several replicas that share its
// batches. All devices and links are equal. Communication overlaps computation, so that the slowest of all stages and
// links sets the pace.
// Validation: equals exhaustive search on random graphs (tests/property/contiguous_split_test.cpp).
// Reference: Narayanan et al., PipeDream, SOSP 2019, section 3.1; one level of links.

#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "sim/workload_trace.hpp"

namespace epocast {

/// Where a stage would stand, for rules of memory.
struct StagePosition {
  std::size_t first = 0;  ///< layer of the trace
  std::size_t last = 0;   ///< one past its last layer
  int replicas = 1;
  int stages_from_here = 1;   ///< this one included; the last stage has 1
  int devices_from_here = 1;  ///< replicas of this stage and of all later ones
};

struct SplitOptions {
  int devices = 1;
  std::optional<int> stages = {};    ///< exactly so many; absent: as many as are best
  bool replicate = false;            ///< whether a stage may have several replicas; then all devices are used
  std::vector<int> replicas = {};    ///< of each stage in turn, if they are given: their sum is `devices`
  BytesPerSecond bandwidth = {};     ///< of one device's link; must be positive
  std::optional<Bytes> memory = {};  ///< of one device; needs `memory_of`
  /// What one replica of a stage needs. REQUIRES: it does not fall with more layers at the stage's end, nor, unless the
  /// number of stages is given, with the number of stages from there on, all else equal.
  std::function<Bytes(const StagePosition&)> memory_of = {};
  /// The trace of a batch that so many replicas share, or null where they cannot. If absent, m replicas take 1/m of the
  /// time. Same layers as the trace; only times are looked at.
  std::function<const WorkloadTrace*(int replicas)> trace_of = {};
  double batches_per_update = 1;   ///< replicas reduce their gradients once in so many
  bool reductions_overlap = true;  ///< with computation; or both are added
};

struct PipelineStage {
  std::size_t first = 0;  ///< layer of the trace
  std::size_t last = 0;   ///< one past its last layer
  int replicas = 1;
  Seconds time;  ///< per batch: see stage_time
  Bytes sent;    ///< activations that leave forwards per batch; as many gradients come back
};

struct ContiguousSplit {
  std::vector<PipelineStage> stages;
  Seconds slowest;  ///< time between batches: of the slowest stage or the slowest link
  Bytes sent;       ///< forwards over all stage boundaries, per batch
};

/// No split keeps to the limits. what() says which stage needs how much memory, or why not.
class SplitError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bytes of one batch that are alive across the boundary after each layer: outputs of it and earlier ones that a later
/// one reads. A branch that runs past several layers counts at each boundary it crosses. 0 after the last layer.
std::vector<Bytes> cut_bytes(const WorkloadTrace& trace);

/// Time of a stage of layers [first, last) per batch (PipeDream: T(i -> j, m)): its computation, or the all-reduce of
/// its gradients, 2 (m - 1) bytes / bandwidth, whichever is longer, divided by its m replicas.
Seconds stage_time(const WorkloadTrace& trace, std::size_t first, std::size_t last, int replicas,
                   BytesPerSecond bandwidth);

/// The split with the smallest `slowest`, and among those the one that sends the fewest bytes. Each stage holds at
/// least one layer that takes time. A link carries activations and their gradients: 2 x cut bytes / bandwidth, and
/// where `replicas` are given each of a stage's or, if those are fewer, of the next one's replicas has a link for its
/// share. Uses all devices if `replicate`, else one per stage; then `stages` may be at most `devices`. For L layers and
/// D devices O(L^2 D^2) at worst, times the number of stages if that is given and stages have replicas: once for the
/// fewest bytes; the O(log(L D)) steps towards the fastest pace look at far fewer states. Throws SplitError;
/// std::invalid_argument for options that make no sense.
ContiguousSplit split_contiguous(const WorkloadTrace& trace, const SplitOptions& options);

}  // namespace epocast
