#include "sim/service_symmetry.hpp"

#include <algorithm>
#include <vector>

namespace epocast {
namespace {

/// By what a task becomes ready: its rank's own events, or those of all ranks.
struct Feeds {
  bool own_rank = false, all_ranks = false;

  bool add(const Feeds& other) {
    const Feeds before = *this;
    own_rank |= other.own_rank;
    all_ranks |= other.all_ranks;
    return own_rank != before.own_rank || all_ranks != before.all_ranks;
  }
};

bool takes_no_time(const Task& task) {
  const auto* compute = std::get_if<Compute>(&task.work);
  return compute != nullptr && !compute->duration.any();
}

}  // namespace

bool ranks_are_served_alike(const CyclicTaskGraph& graph) {
  const auto tasks = graph.tasks();
  const auto is_joint = [&](TaskId task) { return graph.width_of(task) == 1; };
  const std::vector<Edge> edges = graph.edges_with_program_order();
  std::vector<Feeds> feeds(tasks.size());
  const auto feed_of = [&](TaskId before) {
    if (is_joint(before)) return Feeds{.all_ranks = true};
    Feeds own{.own_rank = true};
    // What takes no time ends with what makes it ready.
    if (takes_no_time(graph.task(before))) own = feeds[CyclicTaskGraph::index(before)];
    return own;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& edge : edges) changed |= feeds[CyclicTaskGraph::index(edge.after)].add(feed_of(edge.before));
  }

  std::vector<Feeds> by_queue(graph.queues().size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].queue == QueueId::none) continue;
    // A collective takes its place in line when all ranks are ready for it.
    const Feeds feed = is_joint(TaskId(t)) ? Feeds{.all_ranks = true} : feeds[t];
    by_queue[CyclicTaskGraph::index(tasks[t].queue)].add(feed);
  }
  for (std::size_t q = 0; q < by_queue.size(); ++q) {
    const Queue& queue = graph.queues()[q];
    const bool ordered = queue.discipline == Discipline::program_order || graph.group(queue.group).devices.size() == 1;
    if (!ordered && by_queue[q].own_rank && by_queue[q].all_ranks) return false;
  }
  return true;
}

}  // namespace epocast
