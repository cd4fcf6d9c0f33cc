#pragma once
// The token game of a timed marked graph: when may which instance fire?

#include <cstdint>
#include <vector>

#include "sim/compiled_graph.hpp"

namespace epocast {

/// Counts tokens on edges and, per instance, how many incoming tokens are missing. An instance also waits for its own
/// previous firing to end.
class Readiness {
 public:
  explicit Readiness(const CompiledGraph& graph);

  bool ready(Instance i) const { return missing_[graph_.instance_id(i)] == 0; }
  /// Takes one token from every incoming edge and marks the instance as busy. REQUIRES ready(i).
  void fire(Instance i);
  /// Ends a firing: puts a token on every outgoing edge and calls `on_ready(Instance)` for each instance that thereby
  /// becomes ready, the instance itself included. `on_ready` may fire instances but must not finish any.
  template <class OnReady>
  void finish(Instance i, OnReady on_ready);

 private:
  const CompiledGraph& graph_;
  std::vector<std::uint32_t> tokens_;
  std::vector<std::uint32_t> missing_;
};

template <class OnReady>
void Readiness::finish(Instance i, OnReady on_ready) {
  const CompiledTask& task = graph_.tasks[i.task];
  --missing_[task.first_instance + i.rank];  // no longer busy
  for (std::uint32_t k = 0; k < task.out_count; ++k) {
    const CompiledEdge& edge = graph_.edges[graph_.out[task.first_out + k]];
    const CompiledTask& after = graph_.tasks[edge.after];
    const bool fans_out = task.width == 1 && edge.width > 1;
    const std::uint32_t begin = fans_out ? 0 : i.rank, end = fans_out ? edge.width : i.rank + 1;
    for (std::uint32_t r = begin; r < end; ++r) {
      const std::uint32_t to = after.width == 1 ? 0 : r;
      if (tokens_[edge.first_token + r]++ == 0 && --missing_[after.first_instance + to] == 0 &&
          !(edge.after == i.task && to == i.rank))
        on_ready(Instance{edge.after, to});
    }
  }
  // Last, so that what others do with this firing's result goes before the next firing.
  if (ready(i)) on_ready(i);
}

}  // namespace epocast
