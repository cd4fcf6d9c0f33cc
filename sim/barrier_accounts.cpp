#include "sim/barrier_accounts.hpp"

#include <algorithm>
#include <limits>

namespace epocast {

BarrierAccounts::BarrierAccounts(const CompiledGraph& graph, double start)
    : graph_(graph), join_of_(graph.tasks.size(), -1) {
  for (const CompiledTask& task : graph.tasks) width_ = std::max(width_, task.width);
  ranks_.resize(width_);
  for (Rank& rank : ranks_) rank.since = start;
  for (std::uint32_t t = 0; t < graph.tasks.size() && width_ > 1; ++t) {
    Join join;
    const CompiledTask& task = graph.tasks[t];
    for (std::uint32_t k = 0; k < task.in_count; ++k)
      if (const std::uint32_t e = graph.in[task.first_in + k]; task.width == 1 && graph.edges[e].width == width_) {
        join.edges.push_back(e);
        join.tokens.emplace_back(width_, std::int64_t{graph.edges[e].lag});
      }
    if (join.edges.empty()) continue;
    join_of_[t] = static_cast<std::int32_t>(joins_.size());
    join.arrived.resize(width_);
    for (std::uint32_t r = 0; r < width_; ++r) {
      join.arrived[r].assign(static_cast<std::size_t>(arrivals(join, r)), start);
      ranks_[r].waits_at += join.arrived[r].empty() ? 0 : 1;
    }
    joins_.push_back(std::move(join));
  }
}

std::int64_t BarrierAccounts::arrivals(const Join& join, std::uint32_t rank) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const auto& tokens : join.tokens) fewest = std::min(fewest, tokens[rank]);
  return fewest;
}

void BarrierAccounts::change(Rank& rank, double now, std::int32_t active, std::int32_t waits_at) {
  if (rank.active == 0 && rank.waits_at > 0) rank.account.lost += now - rank.since;
  rank.since = now;
  rank.active += active;
  rank.waits_at += waits_at;
}

void BarrierAccounts::starts(Instance i, double now) {
  if (const std::int32_t j = join_of_[i.task]; j >= 0) join_starts(joins_[static_cast<std::size_t>(j)], now);
  if (graph_.tasks[i.task].width == width_) change(ranks_[i.rank], now, +1, 0);
}

void BarrierAccounts::ends(Instance i, double now) {
  const CompiledTask& task = graph_.tasks[i.task];
  if (task.width != width_) return;
  for (std::uint32_t k = 0; k < task.out_count; ++k) {
    const std::uint32_t e = graph_.out[task.first_out + k];
    if (const std::int32_t j = join_of_[graph_.edges[e].after]; j >= 0 && graph_.edges[e].width == width_)
      arrives(joins_[static_cast<std::size_t>(j)], e, i.rank, now);
  }
  change(ranks_[i.rank], now, -1, 0);
}

void BarrierAccounts::arrives(Join& join, std::uint32_t edge, std::uint32_t rank, double now) {
  const std::int64_t before = arrivals(join, rank);
  const auto place = std::find(join.edges.begin(), join.edges.end(), edge) - join.edges.begin();
  ++join.tokens[static_cast<std::size_t>(place)][rank];
  if (arrivals(join, rank) == before || before < join.started) return;  // not all there, or too late
  if (join.arrived[rank].empty()) change(ranks_[rank], now, 0, +1);
  join.arrived[rank].push_back(now);
}

void BarrierAccounts::join_starts(Join& join, double now) {
  std::uint32_t last = 0;
  double first_date = std::numeric_limits<double>::infinity(), last_date = -first_date;
  for (std::uint32_t r = 0; r < width_; ++r) {
    if (join.arrived[r].empty()) continue;
    first_date = std::min(first_date, join.arrived[r].front());
    if (join.arrived[r].front() >= last_date) last = r;
    last_date = std::max(last_date, join.arrived[r].front());
  }
  const bool somebody_waited = last_date > first_date;
  ranks_[last].account.came_last += somebody_waited ? 1 : 0;
  for (std::uint32_t r = 0; r < width_; ++r) {
    if (join.arrived[r].empty()) continue;
    Rank& rank = ranks_[r];
    join.arrived[r].pop_front();
    change(rank, now, 0, join.arrived[r].empty() ? -1 : 0);
    if (r != last) {
      ranks_[last].account.cost_to_others += rank.account.lost - rank.charged;
      rank.charged = rank.account.lost;
    }
  }
  ++join.started;
}

}  // namespace epocast
