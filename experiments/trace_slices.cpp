#include "experiments/trace_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace epocast {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

bool is_collective(const Task& task) { return std::holds_alternative<Collective>(task.work); }

/// Work for many ranks on the queue of one device, such as a server's, is done on that device.
DeviceId device_of(const CyclicTaskGraph& graph, const Task& task, std::uint32_t rank) {
  const bool elsewhere = std::holds_alternative<Compute>(task.work) && task.queue != QueueId::none;
  const auto& devices = graph.group(elsewhere ? graph.queue(task.queue).group : task.ranks).devices;
  return devices.at(devices.size() == 1 ? 0 : rank);
}

/// Finds intervals by what they are executions of.
class IntervalIndex {
 public:
  explicit IntervalIndex(const std::vector<Interval>& intervals) : intervals_(intervals), sorted_(intervals.size()) {
    std::iota(sorted_.begin(), sorted_.end(), 0U);
    std::sort(sorted_.begin(), sorted_.end(), [&](auto a, auto b) { return key(intervals_[a]) < key(intervals_[b]); });
  }

  /// Its place in the timeline, or kNone.
  std::uint32_t find(std::uint32_t task, std::uint32_t rank, std::int64_t iteration) const {
    const Key wanted{task, rank, iteration};
    const auto it = std::lower_bound(sorted_.begin(), sorted_.end(), wanted,
                                     [&](std::uint32_t i, const Key& k) { return key(intervals_[i]) < k; });
    return it != sorted_.end() && key(intervals_[*it]) == wanted ? *it : kNone;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;
  static Key key(const Interval& i) { return {i.task, i.rank, i.iteration}; }

  const std::vector<Interval>& intervals_;
  std::vector<std::uint32_t> sorted_;
};

}  // namespace

Nanoseconds nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

QueueRole role_of(const CyclicTaskGraph& graph, const Task& task) {
  if (!std::holds_alternative<Compute>(task.work)) return QueueRole::communication;
  return task.queue == QueueId::none ? QueueRole::compute : graph.queue(task.queue).role;
}

/// Returns the first slice of each interval; the others of a collective follow it, rank by rank.
std::vector<std::uint32_t> TraceSlices::add_slices(const CyclicTaskGraph& graph, const ExecutionResult& result,
                                                   double start) {
  const std::vector<Interval>& intervals = result.timeline.intervals;
  const auto span = [&](const Interval& i) {
    return std::pair(nanoseconds(start + i.start), nanoseconds(start + i.end));
  };
  std::vector<std::uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return span(intervals[a]) < span(intervals[b]); });

  std::vector<std::uint32_t> first_slice(intervals.size(), kNone);
  for (const std::uint32_t i : order) {
    const Interval& interval = intervals[i];
    const Task& task = graph.task(TaskId(interval.task));
    const bool on_all = is_collective(task) && !result.folded;
    const std::uint32_t ranks = on_all ? static_cast<std::uint32_t>(graph.ranks_of(TaskId(interval.task))) : 1;
    if (slices_.size() + ranks > kMaxSlices) break;
    first_slice[i] = static_cast<std::uint32_t>(slices_.size());
    const auto [from, to] = span(interval);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::uint32_t rank = on_all ? r : interval.rank;
      const std::uint32_t lane = lanes_.place(device_of(graph, task, rank), role_of(graph, task), from, to);
      slices_.push_back({tasks_ + interval.task, lane, rank, interval.iteration, from, to});
    }
  }
  return first_slice;
}

/// Returns whether all arrows found room.
bool TraceSlices::add_arrows(const CyclicTaskGraph& graph, const ExecutionResult& result,
                             const std::vector<std::uint32_t>& first_slice) {
  std::vector<std::vector<Edge>> incoming(graph.tasks().size());
  for (const Edge& edge : graph.edges()) incoming[CyclicTaskGraph::index(edge.after)].push_back(edge);
  const auto ranks_of = [&](TaskId task) {
    return result.folded ? 1 : static_cast<std::uint32_t>(graph.ranks_of(task));
  };

  const std::vector<Interval>& intervals = result.timeline.intervals;
  const IntervalIndex index(intervals);
  const auto slice_of = [&](TaskId task, std::uint32_t rank, std::int64_t iteration) {
    const bool one_for_all = is_collective(graph.task(task));
    const std::uint32_t i = index.find(static_cast<std::uint32_t>(task), one_for_all ? 0 : rank, iteration);
    return i == kNone || first_slice[i] == kNone ? kNone : first_slice[i] + (one_for_all ? rank : 0);
  };
  const auto add_arrow = [&](std::uint32_t from, std::uint32_t to) {
    if (from == kNone || to == kNone || slices_[from].lane == slices_[to].lane) return true;
    if (arrows_.size() >= kMaxArrows) return false;
    arrows_.push_back({from, to});
    return true;
  };

  for (const Interval& consumer : intervals)
    for (const Edge& edge : incoming[consumer.task]) {
      if (consumer.iteration < edge.lag) continue;  // let through by an initial token
      const std::uint32_t before = ranks_of(edge.before), after = ranks_of(edge.after);
      const bool all_ranks = is_collective(graph.task(edge.after));
      const std::uint32_t begin = all_ranks ? 0 : consumer.rank, end = all_ranks ? after : consumer.rank + 1;
      for (std::uint32_t r = begin; r < end; ++r) {
        // Rank by rank, fanned out from one rank, or joined by one. Collectives over groups of different sizes: one
        // arrow.
        const bool joins = after == 1;
        if (before != after && before != 1 && !joins && r > 0) break;
        const std::uint32_t to = slice_of(edge.after, r, consumer.iteration);
        const std::uint32_t first = before == after ? r : 0, last = joins ? before : first + 1;
        for (std::uint32_t p = first; p < last; ++p)
          if (!add_arrow(slice_of(edge.before, p, consumer.iteration - edge.lag), to)) return false;
      }
    }
  return true;
}

std::vector<std::string> TraceSlices::add(const CyclicTaskGraph& graph, const ExecutionResult& result, double start) {
  std::vector<std::string> remarks;
  const std::vector<std::uint32_t> first_slice = add_slices(graph, result, start);
  if (std::find(first_slice.begin(), first_slice.end(), kNone) != first_slice.end())
    remarks.push_back(fmt::format("only the first {} slices of the file are shown", slices_.size()));
  if (!add_arrows(graph, result, first_slice))
    remarks.push_back(fmt::format("only the first {} arrows of the file are drawn", kMaxArrows));
  tasks_ += static_cast<std::uint32_t>(graph.tasks().size());
  return remarks;
}

}  // namespace epocast
