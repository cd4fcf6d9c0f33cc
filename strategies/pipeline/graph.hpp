#pragma once
// The task graph of a pipeline, whatever its schedule.

#include <vector>

#include "sim/collective.hpp"
#include "sim/strategy.hpp"
#include "sim/task_graph.hpp"
#include "strategies/gradient_buckets.hpp"
#include "strategies/pipeline/schedule.hpp"
#include "strategies/pipeline/stages.hpp"

namespace epocast {

/// Who computes the gradients of a stage's layers.
enum class GradientPlace {
  collocated,     ///< the stage itself
  one_processor,  ///< the last stage, for all: it is sent activations and weights, and sends gradients back (Eserol
                  ///< 2019, section 4.1: what TensorFlow 1 does unless told otherwise)
};

/// Everything that decides what the graph looks like.
struct PipelinePlan {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::vector<Chunk> chunks;                   ///< at a replica's micro-batch
  std::vector<std::vector<DeviceId>> devices;  ///< by stage: one per replica
  int micro_batches = 1;
  int in_flight = 1;  ///< batches, of the threaded schedule
  bool recompute = false;
  double copy = 0;  ///< s per byte that copying a message takes
  GradientPlace gradients = GradientPlace::collocated;
  std::vector<std::vector<Bucket>> reductions;  ///< by chunk, of its layers' gradients; none without replicas
  CollectiveSettings collective;

  int stages() const { return static_cast<int>(devices.size()); }
  int replicas() const { return static_cast<int>(devices.front().size()); }
};

/// What each stage does for one batch: of a schedule without flush only what, not when.
std::vector<StageProgram> programs_of(const PipelinePlan& plan);

/// One iteration is one batch of all replicas. Stages compute in the order of their programs; without flush, the
/// number of micro-batches in flight is limited. Activations and their
/// gradients travel on a queue of their own each, while the stage computes. `trace` is at a replica's micro-batch.
CyclicTaskGraph pipeline_graph(const PipelinePlan& plan, const WorkloadTrace& trace);

}  // namespace epocast
