#pragma once
// The waiting lines of first-come and priority queues. Program order needs none: edges imply it.

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/waiting.hpp"

namespace epocast {

/// Serves one instance at a time per slot. A collective over several slots starts when it has come first in all of
/// them.
class QueueSlots {
 public:
  explicit QueueSlots(const CompiledGraph& graph);

  /// Puts a ready instance in line; `iteration` breaks ties among equal priorities. Calls `begin(Instance)` for each
  /// instance that may start now.
  template <class Begin>
  void enter(Instance i, std::uint64_t iteration, Begin begin) {
    const CompiledTask& task = graph_.tasks[i.task];
    const Waiting entry{graph_.task(i.task).priority, iteration, arrivals_++, i};
    for (std::uint32_t s = 0; s < task.slot_count; ++s) {
      Slot& slot = slots_[slot_of(i, s)];
      slot.line.push(entry);
      serve(slot, begin);
    }
  }

  /// Frees the slots that the instance held.
  template <class Begin>
  void leave(Instance i, Begin begin) {
    const CompiledTask& task = graph_.tasks[i.task];
    for (std::uint32_t s = 0; s < task.slot_count; ++s) slots_[slot_of(i, s)].busy = false;
    for (std::uint32_t s = 0; s < task.slot_count; ++s) serve(slots_[slot_of(i, s)], begin);
  }

  bool waits_for_slot(Instance i) const { return graph_.tasks[i.task].first_slot >= 0; }

 private:
  struct Slot {
    explicit Slot(Discipline discipline) : line(ServedLater{discipline}) {}
    std::priority_queue<Waiting, std::vector<Waiting>, ServedLater> line;
    bool busy = false;
  };

  std::size_t slot_of(Instance i, std::uint32_t s) const {
    const CompiledTask& task = graph_.tasks[i.task];
    return static_cast<std::size_t>(task.first_slot) + std::size_t{task.slot_stride} * i.rank + s;
  }

  template <class Begin>
  void serve(Slot& slot, Begin begin) {
    if (slot.busy || slot.line.empty()) return;
    const Instance next = slot.line.top().instance;
    slot.line.pop();
    slot.busy = true;
    const CompiledTask& task = graph_.tasks[next.task];
    if (task.slot_count == 1 || ++slots_won_[next.task] == task.slot_count) {
      slots_won_[next.task] = 0;
      begin(next);
    }
  }

  const CompiledGraph& graph_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> slots_won_;  ///< per task: slots a waiting collective already holds
  std::uint64_t arrivals_ = 0;
};

}  // namespace epocast
