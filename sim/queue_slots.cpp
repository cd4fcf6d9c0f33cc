#include "sim/queue_slots.hpp"

#include <algorithm>

namespace epocast {

QueueSlots::QueueSlots(const CompiledGraph& graph) : graph_(graph) {
  slots_.reserve(graph.slot_discipline.size());
  for (const Discipline discipline : graph.slot_discipline) slots_.emplace_back(discipline);
  const auto needs_several = [](const CompiledTask& task) { return task.slots.extent > 1; };
  if (std::ranges::any_of(graph.tasks, needs_several)) slots_won_.resize(graph.instances, 0);
}

}  // namespace epocast
