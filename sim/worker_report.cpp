#include "sim/worker_report.hpp"

#include <algorithm>
#include <limits>

namespace epocast {
namespace {

WorkerReport report(const WorkerSources& from, std::uint32_t rank, std::uint32_t ranks) {
  WorkerReport out;
  out.steps = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t t = static_cast<std::uint32_t>(from.graph.tasks.size()); t-- > 0;) {
    if (from.graph.tasks[t].width != ranks) continue;
    const InstanceState& state = from.states[from.graph.instance_id({t, rank})];
    out.device = from.graph.device({t, rank});
    out.steps = std::min<std::int64_t>(out.steps, state.started - (state.firing == Firing::none ? 0 : 1));
    out.ended = std::max(out.ended, state.ended - from.start);
  }
  out.skipped = from.obsolete.skipped(rank);
  out.steps -= out.skipped;
  out.dropped = from.dropped[rank];
  for (const StuckInstance& stuck : from.stuck)
    if (stuck.device == out.device) out.stopped = stuck.since;
  if (const auto& staleness = from.versions.by_rank(); rank < staleness.size() && staleness[rank].writes > 0) {
    out.mean_staleness = staleness[rank].mean();
    out.max_staleness = staleness[rank].max;
  }
  if (from.barriers) {
    const BarrierAccounts::Account& account = from.barriers->account(rank);
    out.lost = account.lost;
    out.cost_to_others = account.cost_to_others;
    out.came_last = account.came_last;
  }
  return out;
}

}  // namespace

std::vector<WorkerReport> report_workers(const WorkerSources& from) {
  std::uint32_t ranks = 1;
  for (const CompiledTask& task : from.graph.tasks) ranks = std::max(ranks, task.width);
  std::vector<WorkerReport> workers;
  for (std::uint32_t r = 0; r < ranks; ++r) workers.push_back(report(from, r, ranks));
  return workers;
}

}  // namespace epocast
