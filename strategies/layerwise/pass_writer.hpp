#pragma once
// The passes of a global configuration as tasks: what every device computes, operator by operator, and the boxes that
// devices send each other for it.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/strategy.hpp"
#include "strategies/layerwise/plan.hpp"
#include "strategies/layerwise/tile_times.hpp"

namespace epocast {

/// A worker in the graph, and its queues.
struct LayerwiseDevice {
  GroupId group{};
  QueueId compute{}, activations{}, gradients{};
  std::optional<QueueId> pushes, pulls;  ///< to and from servers, once there are any
  std::optional<TaskId> last_backward;
};

/// Gradients of a shard, when all micro-batches' are there.
struct MadeGradients {
  ParameterShard shard;
  std::size_t op = 0;
  std::vector<TaskId> after;  ///< by place of the shard
};

class PassWriter {
 public:
  /// Adds devices and queues to the graph. What is passed has to outlive the writer.
  PassWriter(const StrategyContext& context, const LayerwisePlan& plan, TileTimes& times, CyclicTaskGraph& graph);

  /// Adds the passes of all micro-batches, each stage's in the order of the plan's schedule.
  void write();

  // What has been written.
  LayerwiseDevice& device(const Division& of, std::size_t place) {
    return devices_[static_cast<std::size_t>(of.device(place))];
  }
  std::vector<LayerwiseDevice>& devices() { return devices_; }
  /// In the order of the backward pass.
  const std::vector<MadeGradients>& gradients() const { return gradients_; }
  /// The first task of an operator's place in the step: what reads its parameters first.
  TaskId first_forward(std::size_t op, std::size_t place) const { return passes_.front().forward[op][place]; }

  // For those who add tasks of their own.
  const std::string& layer_name(std::size_t layer) const { return times_.whole().layers[layer].name; }
  std::string name_of(const Division& of, const std::string& layer, std::size_t place) const;
  const LayerTrace& trace(const Division& of, std::size_t layer, std::size_t place) {
    return times_.trace(of.number(), layer, of.tile(place));
  }
  TaskId compute(LayerwiseDevice& on, const DeviceTime& time, const Label& label, bool must_queue = false);
  TaskId send(QueueId queue, const LayerwiseDevice& from, const LayerwiseDevice& to, Bytes bytes, const Label& label);

 private:
  /// Tasks of the places of an operator.
  using ByPlace = std::vector<TaskId>;
  /// Last tasks that made gradients of a layer's parameters, by layer.
  using GradientTasks = std::map<std::size_t, TaskId>;
  struct Need {
    OperatorEdge edge;
    std::vector<Piece> pieces;
  };
  /// One micro-batch's, by operator.
  struct MicroBatchTasks {
    std::vector<ByPlace> forward;   ///< the first of the forward pass
    std::vector<ByPlace> made;      ///< when a place has what it holds of the output
    std::vector<ByPlace> backward;  ///< when a place has the gradients of what it read
  };

  void in_rotation(std::vector<Piece>& list, const Division& from, const Division& to) const;
  Label label(const char* operation, std::string name) const;
  void forward(std::size_t op);
  ByPlace forward_sums(const Division& own, const ByPlace& parts, const std::vector<DeviceTime>& behind);
  void backward(std::size_t op);
  void read_gradients(std::size_t op, const ByPlace& first);
  void gather_sums(const Division& own, const ByPlace& parts, const ByPlace& last,
                   const std::vector<GradientTasks>& gradient_of);
  void add_up(std::size_t op, const std::vector<ParameterShard>& shards, const std::vector<GradientTasks>& gradient_of);

  const StrategyContext& context_;
  const LayerwisePlan& plan_;
  TileTimes& times_;
  CyclicTaskGraph& graph_;
  std::vector<LayerwiseDevice> devices_;
  std::vector<std::vector<Need>> needs_;            ///< by operator that needs
  std::vector<std::vector<const Need*>> readers_;   ///< by operator that is read
  std::vector<MicroBatchTasks> passes_;             ///< by micro-batch
  std::size_t micro_batch_ = 0;                     ///< that is being written
  std::vector<std::vector<GradientTasks>> summed_;  ///< by operator and place, over the micro-batches so far
  std::vector<std::size_t> backward_passes_;        ///< by operator, so far
  std::vector<MadeGradients> gradients_;
};

}  // namespace epocast
