#pragma once
// The token game of a timed marked graph: when may which instance fire?

#include <cstdint>
#include <vector>

#include "sim/compiled_graph.hpp"

namespace epocast {

/// Counts tokens on edges and, per instance, how many incoming tokens are missing. An instance also waits for its own
/// previous firing to end. A join with a quorum counts ranks instead: those that it has not waited for owe it a token.
class Readiness {
 public:
  explicit Readiness(const CompiledGraph& graph);

  bool ready(Instance i) const { return missing_[graph_.instance_id(i)] == 0; }
  /// Takes one token from every incoming edge and marks the instance as busy. REQUIRES ready(i).
  void fire(Instance i);
  /// Ends a firing: puts a token on every outgoing edge and calls `on_ready(Instance)` for each instance that thereby
  /// becomes ready, the instance itself included. `on_ready` may fire instances but must not finish any.
  /// `on_late(join)` is called for each join whose quorum did not wait for this.
  template <class OnReady, class OnLate>
  void finish(Instance i, OnReady on_ready, OnLate on_late);
  template <class OnReady>
  void finish(Instance i, OnReady on_ready) {
    finish(i, on_ready, [](std::uint32_t) {});
  }

  /// Whether some join waits for some of its ranks only.
  bool has_quorums() const { return !quorums_.empty(); }

  /// The tokens that the instance lacks: calls `visit(Instance)` for whoever has to end first.
  template <class Visit>
  void for_each_missing(Instance i, Visit visit) const;

 private:
  /// The ranks that a join with a quorum has still to hear of.
  struct Quorum {
    std::uint32_t needed = 0;
    std::uint32_t arrived = 0;
    std::uint32_t counted_edge = 0;      ///< the edge whose late tokens stand for a late rank
    std::vector<std::uint32_t> missing;  ///< by rank: edges without a token
  };
  Quorum* quorum(const CompiledEdge& edge) {
    return edge.to_quorum ? &quorums_[static_cast<std::size_t>(quorum_of_[edge.after])] : nullptr;
  }
  void add_quorum(std::uint32_t task);

  const CompiledGraph& graph_;
  std::vector<std::int32_t> tokens_;  ///< below 0: absorbed when they come
  std::vector<std::uint32_t> missing_;
  std::vector<std::int32_t> quorum_of_;  ///< by task: index, or -1
  std::vector<Quorum> quorums_;
};

template <class OnReady, class OnLate>
void Readiness::finish(Instance i, OnReady on_ready, OnLate on_late) {
  const CompiledTask& task = graph_.tasks[i.task];
  --missing_[task.first_instance + i.rank];  // no longer busy
  for (std::uint32_t k = 0; k < task.out_count; ++k) {
    const std::uint32_t e = graph_.out[task.first_out + k];
    const CompiledEdge& edge = graph_.edges[e];
    const CompiledTask& after = graph_.tasks[edge.after];
    Quorum* const quorum = this->quorum(edge);
    edge.from.for_each_rank(i.rank, [&](std::uint32_t r) {
      const std::uint32_t to = edge.to.team_of(r);
      const std::int32_t had = tokens_[edge.first_token + r]++;
      if (quorum != nullptr && had < 0 && quorum->counted_edge == e) on_late(edge.after);
      if (had != 0) return;
      // A quorum is one condition; it is met once, by the rank that makes it full.
      if (quorum != nullptr && (--quorum->missing[r] > 0 || ++quorum->arrived != quorum->needed)) return;
      if (--missing_[after.first_instance + to] == 0 && !(edge.after == i.task && to == i.rank))
        on_ready(Instance{edge.after, to});
    });
  }
  // Last, so that what others do with this firing's result goes before the next firing.
  if (ready(i)) on_ready(i);
}

template <class Visit>
void Readiness::for_each_missing(Instance i, Visit visit) const {
  const CompiledTask& task = graph_.tasks[i.task];
  for (std::uint32_t k = 0; k < task.in_count; ++k) {
    const CompiledEdge& edge = graph_.edges[graph_.in[task.first_in + k]];
    edge.to.for_each_rank(i.rank, [&](std::uint32_t r) {
      if (tokens_[edge.first_token + r] <= 0) visit(Instance{edge.before, edge.from.team_of(r)});
    });
  }
}

}  // namespace epocast
