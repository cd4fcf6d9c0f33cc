#pragma once
// The waiting lines of first-come and priority queues. Program order needs none: edges imply it.

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/waiting.hpp"

namespace epocast {

/// Serves one instance at a time per slot. A collective that needs several slots starts when it has come first in all
/// of them. It enters all their lines at once, so that no two collectives can each hold what the other waits for.
class QueueSlots {
 public:
  explicit QueueSlots(const CompiledGraph& graph);

  /// Puts a ready instance in line; `iteration` breaks ties among equal priorities. Calls `begin(Instance)` for each
  /// instance that may start now.
  template <class Begin>
  void enter(Instance i, std::uint64_t iteration, Begin begin) {
    const Waiting entry{graph_.task(i.task).priority, iteration, arrivals_++, i};
    graph_.for_each_slot(i, [&](std::uint32_t slot) {
      slots_[slot].line.push(entry);
      serve(slots_[slot], begin);
    });
  }

  /// Frees the slots that the instance held.
  template <class Begin>
  void leave(Instance i, Begin begin) {
    graph_.for_each_slot(i, [&](std::uint32_t slot) { slots_[slot].busy = false; });
    graph_.for_each_slot(i, [&](std::uint32_t slot) { serve(slots_[slot], begin); });
  }

  bool waits_for_slot(Instance i) const { return graph_.tasks[i.task].first_slot >= 0; }

 private:
  struct Slot {
    explicit Slot(Discipline discipline) : line(ServedLater{discipline}) {}
    std::priority_queue<Waiting, std::vector<Waiting>, ServedLater> line;
    bool busy = false;
  };

  template <class Begin>
  void serve(Slot& slot, Begin begin) {
    if (slot.busy || slot.line.empty()) return;
    const Instance next = slot.line.top().instance;
    slot.line.pop();
    slot.busy = true;
    const std::uint32_t needed = graph_.tasks[next.task].slots.extent;
    if (needed == 1) return begin(next);
    std::uint32_t& won = slots_won_[graph_.instance_id(next)];
    if (++won < needed) return;
    won = 0;
    begin(next);
  }

  const CompiledGraph& graph_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> slots_won_;  ///< by instance: slots that a waiting collective already holds
  std::uint64_t arrivals_ = 0;
};

}  // namespace epocast
