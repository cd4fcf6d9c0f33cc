#include "sim/readiness.hpp"

#include <cassert>

namespace epocast {

Readiness::Readiness(const CompiledGraph& graph)
    : graph_(graph), tokens_(graph.tokens), missing_(graph.instances, 0), quorum_of_(graph.tasks.size(), -1) {
  for (const CompiledEdge& edge : graph.edges)
    for (std::uint32_t r = 0; r < edge.width; ++r) tokens_[edge.first_token + r] = static_cast<std::int32_t>(edge.lag);
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t)
    if (graph.task(t).quorum > 0) add_quorum(t);
  for (const CompiledEdge& edge : graph.edges) {
    if (edge.lag > 0 || quorum(edge) != nullptr) continue;
    const CompiledTask& after = graph.tasks[edge.after];
    for (std::uint32_t r = 0; r < edge.width; ++r) ++missing_[after.first_instance + edge.to.team_of(r)];
  }
}

void Readiness::add_quorum(std::uint32_t task) {
  Quorum quorum;
  for (std::uint32_t k = graph_.tasks[task].in_count; k-- > 0;) {
    const std::uint32_t e = graph_.in[graph_.tasks[task].first_in + k];
    const CompiledEdge& edge = graph_.edges[e];
    if (!edge.to_quorum) continue;
    quorum.counted_edge = e;
    quorum.missing.resize(edge.width, 0);
    for (std::uint32_t& missing : quorum.missing) missing += edge.lag == 0 ? 1 : 0;
  }
  if (quorum.missing.empty()) return;  // one rank: an ordinary edge
  quorum.needed = static_cast<std::uint32_t>(graph_.task(task).quorum);
  for (const std::uint32_t missing : quorum.missing) quorum.arrived += missing == 0 ? 1 : 0;
  missing_[graph_.tasks[task].first_instance] += quorum.arrived < quorum.needed ? 1 : 0;
  quorum_of_[task] = static_cast<std::int32_t>(quorums_.size());
  quorums_.push_back(std::move(quorum));
}

void Readiness::fire(Instance i) {
  assert(ready(i));
  const CompiledTask& task = graph_.tasks[i.task];
  std::uint32_t& missing = missing_[task.first_instance + i.rank];
  missing = 1;  // busy
  Quorum* joined = nullptr;
  for (std::uint32_t k = 0; k < task.in_count; ++k) {
    const CompiledEdge& edge = graph_.edges[graph_.in[task.first_in + k]];
    Quorum* const quorum = this->quorum(edge);
    edge.to.for_each_rank(i.rank, [&](std::uint32_t r) {
      if (--tokens_[edge.first_token + r] != 0) return;
      if (quorum == nullptr)
        ++missing;
      else if (quorum->missing[r]++ == 0)
        --quorum->arrived;
    });
    if (quorum != nullptr) joined = quorum;
  }
  if (joined != nullptr && joined->arrived < joined->needed) ++missing;
}

}  // namespace epocast
