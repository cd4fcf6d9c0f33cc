#pragma once
// The task graph of a training step: stages of layers, each on a grid of devices; a schedule of micro-batches; a body
// that says what devices that share a layer send each other; a synchronisation of replicas.

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/collective.hpp"
#include "sim/strategy.hpp"
#include "sim/task_graph.hpp"
#include "strategies/schedules/schedule.hpp"
#include "strategies/step/exchange.hpp"
#include "strategies/step/shared_table.hpp"
#include "strategies/step/stages.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

/// Who computes the gradients of a stage's layers.
enum class GradientPlace {
  collocated,     ///< the stage itself
  one_processor,  ///< the last stage, for all: it is sent activations and weights, and sends gradients back (Eserol
                  ///< 2019, section 4.1: what TensorFlow 1 does unless told otherwise)
};

/// What a stage's devices gather of a message, of which each has got a part.
struct ChunkGathers {
  std::optional<Exchange> forward, backward;
};

/// Everything that decides what the graph looks like.
struct StepPlan {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::vector<Chunk> chunks;      ///< of one device, at one replica's share of a micro-batch
  std::vector<StageRanks> ranks;  ///< by stage
  /// By stage: of one device, at one replica's share of a micro-batch. Not owned.
  std::vector<const WorkloadTrace*> traces;
  std::vector<LayerExchanges> exchanges;  ///< by layer; none where each device has all of a layer
  std::vector<ChunkGathers> gathers;      ///< by chunk; may be empty
  std::vector<bool> experts;              ///< by layer: its first tensor of parameters is of experts; may be empty
  std::vector<SharedTable> tables;        ///< whose copies are in the traces and chunks
  int micro_batches = 1;
  int left_out = 0;       ///< micro-batches between the first half of these and the second, which the graph lacks
  int in_flight = 1;      ///< batches, of the threaded schedule
  double copy = 0;        ///< s per byte that copying a message takes
  bool blocking = false;  ///< a stage stands still while its messages travel; in schedules of whole passes with flush
  GradientPlace gradients = GradientPlace::collocated;
  bool by_layer = false;  ///< passes of layers are tasks of their own, in a single stage

  int stages() const { return static_cast<int>(ranks.size()); }
  const Chunk& chunk(int c) const { return chunks[static_cast<std::size_t>(c)]; }
  const WorkloadTrace& trace(int stage) const { return *traces[static_cast<std::size_t>(stage)]; }
  bool replicas_are_equal() const {
    return std::all_of(ranks.begin(), ranks.end(), [this](const StageRanks& stage) {
      return stage.devices.size() == ranks.front().devices.size();
    });
  }
};

/// What each stage does for one batch: of a schedule without flush only what, not when.
std::vector<StageProgram> programs_of(const StepPlan& plan);

/// One iteration is one round of the synchronisation, usually one batch. A stage's replicas divide each micro-batch
/// evenly, whatever the numbers of replicas before and after it. Stages compute in the order of their programs; without
/// flush, the number of micro-batches in flight is limited. Activations and their gradients travel on a queue of their
/// own each, while the stage computes, or waits (`blocking`). Changes `memory`, by stage, by what the synchronisation
/// needs.
CyclicTaskGraph step_graph(const StepPlan& plan, const StrategyContext& context, const Synchronisation& synchronisation,
                           std::vector<DeviceMemory>& memory);

}  // namespace epocast
