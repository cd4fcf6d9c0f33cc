#include "sim/service_symmetry.hpp"

#include <bit>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace epocast {
namespace {

/// By what tasks become ready, a bit each: their rank's own events, those of all ranks, those of a team along an axis.
using Feeds = std::uint64_t;
constexpr Feeds kOwnRank = 1, kAllRanks = 2;

/// Gives every axis a bit.
class Axes {
 public:
  Feeds of(const Axis& axis) {
    const auto [place, is_new] = bits_.try_emplace({axis.stride, axis.extent}, 2 + bits_.size());
    return place->second < 62 ? Feeds{1} << place->second : Feeds{3} << 62;  // too many to tell apart
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> bits_;  ///< by stride and extent
};

bool takes_no_time(const Task& task) {
  const auto* compute = std::get_if<Compute>(&task.work);
  return compute != nullptr && !compute->duration.any();
}

}  // namespace

bool ranks_are_served_alike(const CyclicTaskGraph& graph) {
  const auto tasks = graph.tasks();
  Axes axes;
  // By task: whose event its end is; 0 of a single rank's.
  std::vector<Feeds> joint(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t)
    joint[t] = graph.width_of(TaskId(t)) == 1 ? kAllRanks : tasks[t].axis.extent > 1 ? axes.of(tasks[t].axis) : 0;
  std::vector<Feeds> feeds(tasks.size());
  std::vector<Edge> from_joins;  // what takes no time ends with what makes it ready
  for (const Edge& edge : graph.edges_with_program_order()) {
    const std::size_t before = CyclicTaskGraph::index(edge.before);
    if (joint[before] == 0 && takes_no_time(tasks[before]))
      from_joins.push_back(edge);
    else
      feeds[CyclicTaskGraph::index(edge.after)] |= joint[before] != 0 ? joint[before] : kOwnRank;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& edge : from_joins) {
      Feeds& own = feeds[CyclicTaskGraph::index(edge.after)];
      const Feeds more = own | feeds[CyclicTaskGraph::index(edge.before)];
      changed |= more != own;
      own = more;
    }
  }

  std::vector<Feeds> by_queue(graph.queues().size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].queue == QueueId::none) continue;
    // A collective takes its place in line when its whole team is ready for it.
    by_queue[CyclicTaskGraph::index(tasks[t].queue)] |= joint[t] != 0 ? joint[t] : feeds[t];
  }
  for (std::size_t q = 0; q < by_queue.size(); ++q) {
    const Queue& queue = graph.queues()[q];
    const bool ordered = queue.discipline == Discipline::program_order || graph.group(queue.group).devices.size() == 1;
    if (!ordered && !std::has_single_bit(by_queue[q]) && by_queue[q] != 0) return false;
  }
  return true;
}

}  // namespace epocast
