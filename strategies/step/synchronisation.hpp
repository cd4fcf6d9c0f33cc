#pragma once
// How the replicas of some parameters agree: what a training step does with gradients.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/step/stage_writer.hpp"
#include "strategies/step/stages.hpp"

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
  int versions = 1;  ///< of the parameters that a device keeps
  int behind = 1;    ///< steps from an update to the first that has to see it

  int replicas() const { return static_cast<int>(along.extent); }
  /// Into how many parts, each on devices of its own, a replica's parameters are divided.
  int parts() const { return static_cast<int>(stage.ranks().devices.size()) / replicas(); }
  /// How many replicas each node has; nothing unless they are equally many, neighbours first.
  std::optional<int> replicas_on_node() const {
    const std::vector<DeviceId>& devices = stage.ranks().devices;
    const auto node = [&](int replica) -> const std::string& {
      return context.device(devices[static_cast<std::size_t>(replica) * along.stride]).node;
    };
    int size = 1;
    while (size < replicas() && node(size) == node(0)) ++size;
    if (replicas() % size != 0) return std::nullopt;
    for (int replica = 1; replica < replicas(); ++replica)
      if ((node(replica) == node(replica - 1)) != (replica % size != 0)) return std::nullopt;
    return size;
  }
  /// A queue of the stage's ranks, apart from that of parameters which have other replicas.
  QueueId communication(const std::string& name, Discipline discipline = Discipline::fifo) const {
    return stage.communication(along == stage.ranks().replicas ? name : name + " of experts", discipline);
  }
  /// What the names of the place's tasks begin with.
  std::string name() const { return by_layer ? "" : chunk.name + " "; }
  /// What the optimizer keeps for the parameters on one device.
  Bytes optimizer_state() const { return chunk.parameters * optimizer_share(context.optimizer, trace); }
  /// The trace with no other layers' gradients and times.
  WorkloadTrace own_trace() const {
    WorkloadTrace own = trace;
    for (std::size_t l = 0; l < own.layers.size(); ++l)
      if (l < chunk.first || l >= chunk.last) {
        own.layers[l].gradients.clear();
        own.layers[l].parameters = own.layers[l].frozen = Bytes(0);
        own.layers[l].times = {};  // the passes of the chunk begin with its own layers
      }
    return own;
  }
};

/// A turn of a chunk's program.
struct Turn {
  int step = 0;  ///< of the round
  int micro_batch = 0;
  bool first = false;  ///< forward pass of the step
  bool last = false;   ///< pass that makes the chunk's gradients
};

/// The training steps after which everything is as it was: one iteration of the graph.
struct TrainingRound {
  int steps = 1;
  bool quiet = false;         ///< during all of them but the last, replicas leave each other alone
  bool one_version = false;   ///< replicas exchange parameters, of which there must be one version, not a stash
  bool data_only = false;     ///< replicas may differ, or have to have samples of their own
  bool own_versions = false;  ///< versions of parameters are counted by the synchronisation, where steps have an end
  int periods = 1;            ///< of equally many steps, after each of which replicas exchange something
};

/// Where a layer's gradients may be summed with those that other stages have made of the same parameters.
struct StageSum {
  std::vector<TaskId> after = {};   ///< the replicas' own sums; none: as soon as the gradients are made
  std::vector<TaskId> before = {};  ///< what takes the gradients, besides the update
  int shares = 1;                   ///< of which each replica has one
};

/// One place's part of the synchronisation. Told what the place's program does while it is written, it adds its own
/// tasks to it and remembers where; it ties them together at the end.
class PlaceSynchronisation {
 public:
  virtual ~PlaceSynchronisation() = default;
  /// Whether the layer's gradients of weights are made in its backward pass, and not by the synchronisation.
  virtual bool makes_gradients(std::size_t /*layer*/) const { return true; }
  virtual void before_forward(std::size_t /*layer*/, const Turn&) {}
  virtual void after_forward_pass(const Turn&) {}
  virtual void before_backward(std::size_t /*layer*/, const Turn&) {}
  /// Of the pass that makes gradients of activations, maybe those of weights too.
  virtual void after_backward_data_pass(const Turn&) {}
  /// When the layer's gradients of weights are there.
  virtual void after_backward(std::size_t /*layer*/, const Turn&) {}
  virtual void after_backward_pass(const Turn&) {}
  /// Writes the updates: what this step of the round ends with here. Returns those that the next step's first pass must
  /// not get ahead of; nothing is looked at where each layer's passes are tasks of their own.
  virtual Lanes update(int step) = 0;
  /// When all programs are complete.
  virtual void tie() {}
  /// Of the round's last step. Asked for when all is tied.
  virtual StageSum stage_sum(std::size_t /*layer*/) const { return {}; }
  /// In steps that never end, where the updates of all replicas are counted, of which each has a copy that what
  /// update() returns completes; none: each replica counts its own.
  virtual StoreId shared_versions() const { return StoreId::none; }
  /// What one device of the place needs more or less than one that keeps everything to itself.
  virtual void change(MemoryUse& /*use*/) const {}
  /// Whether each step, or round of steps, begins with reading the parameters that are trained from elsewhere.
  virtual bool reads_first() const { return false; }
  /// What it keeps elsewhere, such as on servers; on devices that train, on top of what they hold.
  virtual std::vector<DeviceMemory> elsewhere() const { return {}; }
};

class Synchronisation {
 public:
  virtual ~Synchronisation() = default;
  virtual std::unique_ptr<PlaceSynchronisation> at(const ParameterPlace& place) const = 0;
  virtual TrainingRound round(int /*replicas*/) const { return {}; }
};

using SynchronisationRegistry = Registry<Synchronisation>;

}  // namespace epocast
