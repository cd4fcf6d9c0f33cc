#pragma once
// Sums of the gradients of tables that stages share: each copy's with those of its counterparts on the other stages,
// or of all copies at once where stages have unequal numbers of replicas.

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "strategies/step/step_graph.hpp"

namespace epocast {

class TableSums {
 public:
  /// What is passed has to outlive it.
  TableSums(const StepPlan& plan, const StrategyContext& context, CyclicTaskGraph& graph)
      : plan_(plan), context_(context), graph_(graph) {}

  /// A step of the round has been written, after those before it. By chunk: what makes its gradients, micro-batch after
  /// micro-batch, and its updates, place after place.
  void note(const std::vector<std::vector<Lanes>>& gradients, const std::vector<std::vector<Lanes>>& updates);

  /// Adds the sums: after gradients are made, and after what replicas sum, and before updates. `places`, by chunk, are
  /// tied.
  void write(const std::deque<StageWriter>& stages,
             const std::vector<std::vector<std::unique_ptr<PlaceSynchronisation>>>& places);

 private:
  /// Of a stage: the layer whose parameter the table is there, in one step.
  struct Holder {
    int chunk = 0;
    std::size_t layer = 0;
    std::vector<Lanes> made, updates;
  };
  struct Sum {
    const SharedTable* table = nullptr;
    std::vector<Holder> holders;
  };

  Holder holder(std::size_t layer, const std::vector<std::vector<Lanes>>& gradients,
                const std::vector<std::vector<Lanes>>& updates) const;
  QueueId queue_of(const SharedTable& table, const std::string& name, const std::vector<DeviceId>& devices);
  void after_all(const std::vector<TaskId>& before, const std::vector<TaskId>& after);

  const StepPlan& plan_;
  const StrategyContext& context_;
  CyclicTaskGraph& graph_;
  std::vector<std::vector<Sum>> steps_;
  std::map<std::size_t, QueueId> queues_;  ///< by layer
};

}  // namespace epocast
