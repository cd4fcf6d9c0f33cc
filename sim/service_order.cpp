#include "sim/service_order.hpp"

namespace epocast {

ServiceOrder::ServiceOrder(const CompiledGraph& graph) : graph_(graph) {
  for (const CompiledTask& task : graph.tasks) {
    first_turn_.push_back(turns_.size());
    if (task.first_slot >= 0) turns_.resize(turns_.size() + task.width);
  }
}

std::vector<ServiceCount> ServiceOrder::counts(const std::vector<std::uint32_t>& started, bool one_rank) const {
  std::vector<ServiceCount> counts;
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
