#pragma once
// Which layers are on which stage, and on how many replicas of it: the split by time (`split: time`), within memory.
//
// Scope: the optimal contiguous split (strategies/partitioners/contiguous_split.hpp) with what a schedule does to
// memory and to the time between batches.
// Limits: stages with several chunks of layers (interleaved) are kept within their memory by giving each chunk the same
// share of it, which may miss a faster split. On devices of several kinds, stages whose places are given are timed on
// their own devices; while numbers of replicas are chosen, all are taken to be of the slowest kind, and in any case to
// have no more memory than the one with the least. Where numbers of replicas are to be chosen for many devices, one
// link carries all that goes from a stage to the next (PipeDream's rule), whatever their replicas. Validation: all
// splits of random networks tried out, with and without a limit of memory (tests/unit/pipeline_layout_test.cpp).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/memory.hpp"
#include "sim/workload_trace.hpp"
#include "strategies/step/stages.hpp"
#include "strategies/step/step_graph.hpp"

namespace epocast {

/// The traces of one micro-batch that 1, 2, ... replicas share evenly. Makes each when it is first asked for.
class MicroBatch {
 public:
  /// `at_once`: as LayerSums takes it.
  MicroBatch(TraceSource source, std::int64_t samples, bool at_once = false)
      : source_(std::move(source)), samples_(samples), at_once_(at_once) {}

  bool divides_by(int replicas) const { return samples_ % replicas == 0; }
  /// At a replica's share. REQUIRES: divides_by(replicas). What it refers to stays where it is.
  const WorkloadTrace& share(int replicas) { return shared(replicas).trace; }
  /// The same without updates, which are not part of a micro-batch's time.
  const WorkloadTrace& passes(int replicas) { return shared(replicas).passes; }
  const LayerSums& sums(int replicas) { return shared(replicas).sums; }
  const PassPeakBounds& peak_bounds(int replicas) { return shared(replicas).peaks; }

 private:
  struct Shared {
    Shared(WorkloadTrace made, bool at_once);
    WorkloadTrace trace, passes;
    LayerSums sums;
    PassPeakBounds peaks;
  };
  const Shared& shared(int replicas);

  TraceSource source_;
  std::int64_t samples_;
  bool at_once_;
  std::map<int, std::unique_ptr<Shared>> shares_;
};

/// What the split has to keep to.
struct SplitLimits {
  BytesPerSecond bandwidth;     ///< of each device's link
  std::optional<Bytes> memory;  ///< of each device; none: whatever it takes
  Optimizer optimizer = Optimizer::sgd;
  bool overlap = true;  ///< of all-reduces with the last backward pass
};

struct StageLayout {
  std::vector<int> replicas;            ///< by stage
  std::vector<std::size_t> boundaries;  ///< first layer of each chunk, then the number of layers
  Seconds batch;                        ///< estimate of its time; 0 with several chunks per stage
  bool fits = true;                     ///< in memory

  /// Of two that fit, or of two that do not, the faster one, if not by rounding only.
  bool better_than(const StageLayout& other) const;
};

/// The layout with the fastest slowest stage or link that fits in memory or, if none does, the fastest. Of `plan`:
/// schedule, in_flight, gradients, micro_batches; how many chunks it has, and how many stages. `replicas`
/// are given by stage, or, if empty, chosen by the same measure so that all of so many `devices` are used (one chunk
/// per stage). Throws SplitError if there is no split at all.
StageLayout split_by_time(MicroBatch& micro_batch, const StepPlan& plan, const std::vector<int>& replicas, int devices,
                          const SplitLimits& limits);

/// The best of the layouts with all numbers of replicas that add up to `devices`, by the estimated time of a batch; for
/// many devices, the one that split_by_time chooses. Throws SplitError.
StageLayout split_and_replicate(MicroBatch& micro_batch, const StepPlan& plan, int devices, const SplitLimits& limits);

}  // namespace epocast
