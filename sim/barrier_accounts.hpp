#pragma once
// Who loses time at joins, and because of whom.

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/compiled_graph.hpp"

namespace epocast {

/// A rank loses time while nothing of its own is under way or in line and it has arrived at a join that has not gone
/// ahead. When the join does, what each rank has lost since the last time is put down to the rank that arrived last.
/// Only joins of ranks of the widest group count, all together or team by team.
class BarrierAccounts {
 public:
  BarrierAccounts(const CompiledGraph& graph, double start);

  void starts(Instance i, double now);
  void ends(Instance i, double now);

  struct Account {
    double lost = 0;             ///< s that the rank waited for others
    double cost_to_others = 0;   ///< s that others waited for it, summed over them
    std::int64_t came_last = 0;  ///< how often a join waited for it alone
  };
  const Account& account(std::uint32_t rank) const { return ranks_[rank].account; }

 private:
  struct Rank {
    Account account;
    double since = 0;
    double charged = 0;  ///< of `lost`: already put down to somebody
    std::int32_t active = 0;
    std::int32_t waits_at = 0;  ///< joins
  };
  struct Join {
    std::vector<std::uint32_t> edges;
    std::uint32_t team = 0;
    Axis teams;
    std::int64_t started = 0;
    std::vector<std::vector<std::int64_t>> tokens;  ///< by edge and place in the team, since the start
    std::vector<std::deque<double>> arrived;        ///< by place: dates, from iteration `started` on

    std::uint32_t rank(std::uint32_t place) const { return teams.rank_at(team, place); }
  };

  /// Whether the edge joins tasks of lone ranks of the widest group.
  bool joins_ranks(const CompiledEdge& edge) const {
    return width_ > 1 && edge.width == width_ && edge.from.extent == 1 && edge.to.extent > 1;
  }
  void change(Rank& rank, double now, std::int32_t active, std::int32_t waits_at);
  void join_starts(Join& join, double now);
  void arrives(Join& join, std::uint32_t edge, std::uint32_t place, double now);
  static std::int64_t arrivals(const Join& join, std::uint32_t place);

  const CompiledGraph& graph_;
  std::uint32_t width_ = 1;
  std::vector<Rank> ranks_;
  std::vector<Join> joins_;
  std::vector<std::int32_t> first_join_of_;  ///< by task: of its team 0, or -1
};

}  // namespace epocast
