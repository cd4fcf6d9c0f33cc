#pragma once
// What the stages of a pipeline hold in their memory at the peak: weights in as many versions as the schedule needs,
// gradients, the optimizer's state, the activations of all passes under way, and what the running one has besides.

#include <vector>

#include "sim/strategy.hpp"
#include "strategies/step/step_graph.hpp"

namespace epocast {

/// Versions of its weights that a stage holds, the current one included.
int weight_versions(PipelineSchedule schedule, int stages, int stage);

/// How many passes of one chunk can be under way on its stage, for deciding where chunks begin.
class ChunkNeed {
 public:
  /// `program` is the stage's work for one batch; see stage_programs_for_memory.
  /// `state`: bytes of the optimizer's state for a byte of parameters.
  ChunkNeed(int chunk, const StageProgram& program, int versions, double state);

  /// Of a chunk with so many bytes of parameters, of their gradients, of activations that it keeps, what comes in
  /// included, activations that it computes again, and what the running pass has on top.
  Bytes operator()(Bytes parameters, Bytes gradients, Bytes kept, Bytes recomputed, Bytes on_top) const;

 private:
  struct Peak {
    int passes = 0;   ///< under way
    int running = 0;  ///< of them have what is computed again
  };
  double copies_;            ///< bytes per byte of parameters, without gradients
  std::vector<Peak> peaks_;  ///< none of which is below another in both
};

/// Memory of chunks that are not made yet, by chunk. Of the plan, its chunks and devices only count.
/// `trace`: any of the network.
std::vector<ChunkNeed> chunk_needs(const StepPlan& plan, Optimizer optimizer, const WorkloadTrace& trace);

/// By stage: passes of all its chunks, from forward to backward, that are under way at most.
std::vector<int> passes_under_way(const StepPlan& plan);

/// Of each stage, as the plan's schedule works.
std::vector<DeviceMemory> pipeline_memory(const StepPlan& plan, Optimizer optimizer);

/// Adds what one device holds besides. If it trains, it holds that on top of what its entry says, and gets an entry of
/// its own.
void add_memory(std::vector<DeviceMemory>& memory, const DeviceMemory& more);

}  // namespace epocast
