#include "sim/queue_slots.hpp"

namespace epocast {

QueueSlots::QueueSlots(const CompiledGraph& graph) : graph_(graph), slots_won_(graph.tasks.size(), 0) {
  slots_.reserve(graph.slot_discipline.size());
  for (const Discipline discipline : graph.slot_discipline) slots_.emplace_back(discipline);
}

}  // namespace epocast
