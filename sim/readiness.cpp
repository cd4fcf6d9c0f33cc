#include "sim/readiness.hpp"

#include <cassert>

namespace epocast {

Readiness::Readiness(const CompiledGraph& graph) : graph_(graph), tokens_(graph.tokens), missing_(graph.instances, 0) {
  for (const CompiledEdge& edge : graph.edges) {
    const CompiledTask& after = graph.tasks[edge.after];
    for (std::uint32_t r = 0; r < edge.width; ++r) {
      tokens_[edge.first_token + r] = edge.lag;
      if (edge.lag == 0) ++missing_[after.first_instance + (after.width == 1 ? 0 : r)];
    }
  }
}

void Readiness::fire(Instance i) {
  assert(ready(i));
  const CompiledTask& task = graph_.tasks[i.task];
  std::uint32_t& missing = missing_[task.first_instance + i.rank];
  missing = 1;  // busy
  for (std::uint32_t k = 0; k < task.in_count; ++k) {
    const CompiledEdge& edge = graph_.edges[graph_.in[task.first_in + k]];
    const bool joins = task.width == 1 && edge.width > 1;
    const std::uint32_t begin = joins ? 0 : i.rank, end = joins ? edge.width : i.rank + 1;
    for (std::uint32_t r = begin; r < end; ++r)
      if (--tokens_[edge.first_token + r] == 0) ++missing;
  }
}

}  // namespace epocast
