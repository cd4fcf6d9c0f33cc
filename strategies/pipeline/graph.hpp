#pragma once
// The task graph of a pipeline, whatever its schedule.

#include <algorithm>
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
  std::vector<Chunk> chunks;                   ///< at one replica's share of a micro-batch
  std::vector<std::vector<DeviceId>> devices;  ///< by stage: one per replica
  /// By stage: at one replica's share of a micro-batch. Not owned.
  std::vector<const WorkloadTrace*> traces;
  int micro_batches = 1;
  int in_flight = 1;  ///< batches, of the threaded schedule
  double copy = 0;    ///< s per byte that copying a message takes
  GradientPlace gradients = GradientPlace::collocated;
  std::vector<std::vector<Bucket>>
      reductions;  ///< by chunk, of its layers' gradients; none where a stage has one replica
  CollectiveSettings collective;

  int stages() const { return static_cast<int>(devices.size()); }
  bool replicas_are_equal() const {
    return std::all_of(devices.begin(), devices.end(),
                       [this](const auto& stage) { return stage.size() == devices.front().size(); });
  }
};

/// What each stage does for one batch: of a schedule without flush only what, not when.
std::vector<StageProgram> programs_of(const PipelinePlan& plan);

/// One iteration is one batch. A stage's replicas divide each micro-batch evenly, whatever the numbers of replicas
/// before and after it. Stages compute in the order of their programs; without flush, the number of micro-batches in
/// flight is limited. Activations and their gradients travel on a queue of their own each, while the stage computes.
CyclicTaskGraph pipeline_graph(const PipelinePlan& plan);

}  // namespace epocast
