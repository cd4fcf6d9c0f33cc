#include "sim/service_order.hpp"

namespace epocast {

ServiceOrder::ServiceOrder(const CompiledGraph& graph) : graph_(graph) {
  first_turn_.reserve(graph.tasks.size());
  std::size_t turns = 0;
  for (const CompiledTask& task : graph.tasks) {
    first_turn_.push_back(turns);
    turns += task.first_slot >= 0 ? task.width : 0;
  }
  turns_.resize(turns);
}

std::vector<ServiceCount> ServiceOrder::counts(const std::vector<std::uint32_t>& started, bool one_rank) const {
  std::vector<ServiceCount> counts;
  counts.reserve(started.size());
  for (std::uint32_t t = 0; t < graph_.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < (one_rank ? 1 : graph_.tasks[t].width); ++r) {
      counts.push_back({.task = t, .rank = r, .begun = started[graph_.instance_id({t, r})]});
      if (graph_.tasks[t].first_slot < 0) continue;
      const Turn& turn = turns_[at({t, r})];
      counts.back().begun -= turn.waits ? 1 : 0;
      counts.back().order = turn.order;
    }
  return counts;
}

}  // namespace epocast
