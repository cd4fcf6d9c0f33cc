#pragma once
// How the replicas of some parameters agree: what a training step does with gradients.

#include <memory>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/pipeline/stages.hpp"
#include "strategies/step/stage_writer.hpp"

namespace epocast {

/// Parameters of consecutive layers on the ranks of a stage.
struct ParameterPlace {
  StageWriter& stage;
  Axis along;  ///< which the ranks have the same parameters
  const Chunk& chunk;
  const WorkloadTrace& trace;  ///< of one device; layers outside of the chunk are others' business
  const StrategyContext& context;
  bool by_layer = false;  ///< each layer's passes are tasks of their own, and so should updates be
  int micro_batches = 1;

  int replicas() const { return static_cast<int>(along.extent); }
  /// A queue of the stage's ranks, apart from that of parameters which have other replicas.
  QueueId communication(const std::string& name, Discipline discipline = Discipline::fifo) const {
    return stage.communication(along == stage.ranks().replicas ? name : name + " of experts", discipline);
  }
  /// Of the micro-batch's batch of one device.
  std::string name() const { return by_layer ? "" : chunk.name + " "; }
  /// The trace with no other layers' gradients and times.
  WorkloadTrace own_trace() const {
    WorkloadTrace own = trace;
    for (std::size_t l = 0; l < own.layers.size(); ++l)
      if (l < chunk.first || l >= chunk.last) {
        own.layers[l].gradients.clear();
        own.layers[l].times = {};  // the passes of the chunk begin with its own layers
      }
    return own;
  }
};

/// A turn of a chunk's program.
struct Turn {
  int micro_batch = 0;
  bool first = false;  ///< forward pass of the step
  bool last = false;   ///< pass that makes the chunk's gradients
};

/// One place's part of the synchronisation. Told what the place's program does while it is written, it adds its own
/// tasks to it and remembers where; it ties them together at the end.
class PlaceSynchronisation {
 public:
  virtual ~PlaceSynchronisation() = default;
  virtual void before_forward(std::size_t /*layer*/, const Turn&) {}
  virtual void after_forward_pass(const Turn&) {}
  virtual void before_backward(std::size_t /*layer*/, const Turn&) {}
  /// Of the pass that makes gradients of activations, maybe those of weights too.
  virtual void after_backward_data_pass(const Turn&) {}
  /// When the layer's gradients of weights are there.
  virtual void after_backward(std::size_t /*layer*/, const Turn&) {}
  virtual void after_backward_pass(const Turn&) {}
  /// Writes the updates: what the step ends with here, in the order of the network's end to its beginning. Returns
  /// those that the next step's first pass must not get ahead of.
  virtual Lanes update() = 0;
  /// When all programs are complete.
  virtual void tie() {}
  /// What one device of the place needs more or less than one that keeps everything to itself.
  virtual void change(MemoryUse& /*use*/) const {}
};

class Synchronisation {
 public:
  virtual ~Synchronisation() = default;
  virtual std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const = 0;
};

using SynchronisationRegistry = Registry<Synchronisation>;

}  // namespace epocast
