#include "sim/cycle_bound.hpp"

#include <algorithm>
#include <cassert>
#include <map>

#include "sim/cycle_ratio.hpp"

namespace epocast {
namespace {

/// Arcs between instances, with the duration of the one that they leave, and lags that are never negative (retimed).
struct RetimedGraph {
  std::vector<double> durations;  ///< by instance
  std::vector<RatioArc> arcs;
  std::vector<int> lags;  ///< by arc: the lag before retiming

  void reserve(std::size_t most) {
    arcs.reserve(most);
    lags.reserve(most);
  }
  void add(std::uint64_t from, std::uint64_t to, std::int64_t lag, std::int64_t true_lag) {
    arcs.push_back(
        {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), durations[from], static_cast<double>(lag)});
    lags.push_back(static_cast<int>(true_lag));
  }
};

/// Whether is_one(instance, lag) of something that waits for an instance; what goes to several ranks is not looked at.
template <class IsOne>
bool any_successor(const CompiledGraph& graph, Instance i, IsOne is_one) {
  const CompiledTask& task = graph.tasks[i.task];
  for (std::uint32_t k = 0; k < task.out_count; ++k) {
    const CompiledEdge& edge = graph.edges[graph.out[task.first_out + k]];
    if (edge.from.extent == 1 && is_one(Instance{edge.after, edge.to.team_of(i.rank)}, std::int64_t{edge.lag}))
      return true;
  }
  return false;
}

/// Whether two edges, by way of a third instance, say already what one of this lag would say.
bool follows_anyway(const CompiledGraph& graph, Instance before, Instance after, std::int64_t lag) {
  return any_successor(graph, before, [&](Instance between, std::int64_t there) {
    return any_successor(graph, between, [&](Instance last, std::int64_t on) {
      return last.task == after.task && last.rank == after.rank && there + on <= lag;
    });
  });
}

/// Adds an edge from each instance to the one served next on its slot. In a steady state of period 1 the last
/// beginnings on a slot are one of each of its instances, in the order of service.
void add_service_order(const CompiledGraph& graph, const std::vector<ServiceCount>& counts, RetimedGraph& out) {
  std::map<std::int32_t, std::vector<const ServiceCount*>> by_slot;
  for (const ServiceCount& c : counts)
    if (c.slot >= 0) by_slot[c.slot].push_back(&c);
  for (auto& [slot, served] : by_slot) {
    std::sort(served.begin(), served.end(),
              [](const ServiceCount* a, const ServiceCount* b) { return a->order < b->order; });
    for (std::size_t k = 0; k < served.size(); ++k) {
      const ServiceCount& from = *served[k];
      const ServiceCount& to = *served[(k + 1) % served.size()];
      const int lag = k + 1 == served.size() ? 1 : 0;  // the next round
      const Instance before{from.task, from.rank}, after{to.task, to.rank};
      const std::int64_t true_lag = lag + to.begun - from.begun;
      if (!follows_anyway(graph, before, after, true_lag))
        out.add(graph.instance_id(before), graph.instance_id(after), lag, true_lag);
    }
  }
}

/// Each waits for its own previous firing: of all these cycles the longest counts. It is also an arc for whatever has
/// no other.
void add_waiting_for_oneself(const CompiledGraph& graph, RetimedGraph& out) {
  const auto longest = static_cast<std::uint64_t>(std::ranges::max_element(out.durations) - out.durations.begin());
  for (const CompiledTask& task : graph.tasks)
    for (std::uint64_t id = task.first_instance; id < task.first_instance + task.width; ++id)
      if (task.out_count == 0 || id == longest) out.add(id, id, 1, 1);
}

/// All arcs. Every lag is replaced by lag + begun(before) - begun(after). This "retiming" leaves the ratio of each
/// cycle as it is and makes all lags non-negative, as Howard's algorithm needs, service order included: nothing begins
/// its iteration k before what it waits for has begun its iteration k - lag.
RetimedGraph retime(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                    const std::vector<ServiceCount>& counts) {
  RetimedGraph out;
  out.durations.reserve(graph.instances);
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < graph.tasks[t].width; ++r) out.durations.push_back(duration({t, r}));
  out.reserve(graph.tokens + counts.size() + 1);
  std::vector<std::int64_t> begun(graph.instances, 0);
  for (const ServiceCount& c : counts) begun[graph.instance_id({c.task, c.rank})] = c.begun;
  add_waiting_for_oneself(graph, out);
  for (const CompiledEdge& edge : graph.edges) {
    for (std::uint32_t r = 0; r < edge.width; ++r) {
      const Instance from{edge.before, edge.from.team_of(r)}, to{edge.after, edge.to.team_of(r)};
      const auto before = graph.instance_id(from), after = graph.instance_id(to);
      const auto lag = static_cast<std::int64_t>(edge.lag) + begun[before] - begun[after];
      assert(lag >= 0);
      out.add(before, after, lag, edge.lag);
    }
  }
  add_service_order(graph, counts, out);
  return out;
}

}  // namespace

CycleBound maximum_cycle_ratio(const CompiledGraph& graph, const std::function<double(Instance)>& duration,
                               const std::vector<ServiceCount>& counts) {
  CycleBound bound;
  const RetimedGraph retimed = retime(graph, duration, counts);
  const CriticalCycle cycle = critical_cycle(graph.instances, retimed.arcs);
  if (cycle.ratio <= 0) return bound;

  std::vector<std::uint32_t> task_of(graph.instances);
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < graph.tasks[t].width; ++r) task_of[graph.instance_id({t, r})] = t;
  bound.seconds = cycle.ratio;
  for (const std::size_t a : cycle.arcs) {
    bound.tasks.push_back(task_of[retimed.arcs[a].from]);
    bound.lags.push_back(retimed.lags[a]);
    bound.durations.push_back(retimed.arcs[a].weight);
  }
  return bound;
}

}  // namespace epocast
