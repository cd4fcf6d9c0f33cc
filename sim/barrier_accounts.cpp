#include "sim/barrier_accounts.hpp"

#include <algorithm>
#include <limits>

namespace epocast {

BarrierAccounts::BarrierAccounts(const CompiledGraph& graph, double start)
    : graph_(graph), first_join_of_(graph.tasks.size(), -1) {
  for (const CompiledTask& task : graph.tasks) width_ = std::max(width_, task.width);
  ranks_.resize(width_);
  for (Rank& rank : ranks_) rank.since = start;
  for (std::uint32_t t = 0; t < graph.tasks.size() && width_ > 1; ++t) {
    std::vector<std::uint32_t> edges;
    Axis teams;
    const CompiledTask& task = graph.tasks[t];
    for (std::uint32_t k = 0; k < task.in_count; ++k) {
      const std::uint32_t e = graph.in[task.first_in + k];
      if (!joins_ranks(graph.edges[e])) continue;
      edges.push_back(e);
      teams = graph.edges[e].to;
    }
    if (edges.empty()) continue;
    first_join_of_[t] = static_cast<std::int32_t>(joins_.size());
    for (std::uint32_t team = 0; team < task.width; ++team) {
      Join& join = joins_.emplace_back();
      join.edges = edges;
      join.team = team;
      join.teams = teams;
      for (const std::uint32_t e : edges) join.tokens.emplace_back(teams.extent, std::int64_t{graph.edges[e].lag});
      join.arrived.resize(teams.extent);
      for (std::uint32_t place = 0; place < teams.extent; ++place) {
        join.arrived[place].assign(static_cast<std::size_t>(arrivals(join, place)), start);
        ranks_[teams.rank_at(team, place)].waits_at += join.arrived[place].empty() ? 0 : 1;
      }
    }
  }
}

std::int64_t BarrierAccounts::arrivals(const Join& join, std::uint32_t place) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const auto& tokens : join.tokens) fewest = std::min(fewest, tokens[place]);
  return fewest;
}

void BarrierAccounts::change(Rank& rank, double now, std::int32_t active, std::int32_t waits_at) {
  if (rank.active == 0 && rank.waits_at > 0) rank.account.lost += now - rank.since;
  rank.since = now;
  rank.active += active;
  rank.waits_at += waits_at;
}

void BarrierAccounts::starts(Instance i, double now) {
  if (const std::int32_t j = first_join_of_[i.task]; j >= 0)
    join_starts(joins_[static_cast<std::size_t>(j) + i.rank], now);
  if (graph_.tasks[i.task].width == width_) change(ranks_[i.rank], now, +1, 0);
}

void BarrierAccounts::ends(Instance i, double now) {
  const CompiledTask& task = graph_.tasks[i.task];
  if (task.width != width_) return;
  for (std::uint32_t k = 0; k < task.out_count; ++k) {
    const std::uint32_t e = graph_.out[task.first_out + k];
    const CompiledEdge& edge = graph_.edges[e];
    if (!joins_ranks(edge)) continue;
    const auto first = static_cast<std::size_t>(first_join_of_[edge.after]);
    arrives(joins_[first + edge.to.team_of(i.rank)], e, edge.to.place_of(i.rank), now);
  }
  change(ranks_[i.rank], now, -1, 0);
}

void BarrierAccounts::arrives(Join& join, std::uint32_t edge, std::uint32_t at, double now) {
  const std::int64_t before = arrivals(join, at);
  const auto of = std::find(join.edges.begin(), join.edges.end(), edge) - join.edges.begin();
  ++join.tokens[static_cast<std::size_t>(of)][at];
  if (arrivals(join, at) == before || before < join.started) return;  // not all there, or too late
  if (join.arrived[at].empty()) change(ranks_[join.rank(at)], now, 0, +1);
  join.arrived[at].push_back(now);
}

void BarrierAccounts::join_starts(Join& join, double now) {
  std::uint32_t last = 0;
  double first_date = std::numeric_limits<double>::infinity(), last_date = -first_date;
  for (std::uint32_t place = 0; place < join.teams.extent; ++place) {
    if (join.arrived[place].empty()) continue;
    first_date = std::min(first_date, join.arrived[place].front());
    if (join.arrived[place].front() >= last_date) last = join.rank(place);
    last_date = std::max(last_date, join.arrived[place].front());
  }
  const bool somebody_waited = last_date > first_date;
  ranks_[last].account.came_last += somebody_waited ? 1 : 0;
  for (std::uint32_t place = 0; place < join.teams.extent; ++place) {
    if (join.arrived[place].empty()) continue;
    Rank& rank = ranks_[join.rank(place)];
    join.arrived[place].pop_front();
    change(rank, now, 0, join.arrived[place].empty() ? -1 : 0);
    if (join.rank(place) != last) {
      ranks_[last].account.cost_to_others += rank.account.lost - rank.charged;
      rank.charged = rank.account.lost;
    }
  }
  ++join.started;
}

}  // namespace epocast
