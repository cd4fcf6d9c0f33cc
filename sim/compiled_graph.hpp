#pragma once
// A cyclic task graph flattened for execution: dense instances, tokens and queue slots. Task t has `width` instances,
// one per team (mostly, per rank); instance ids are consecutive, so lock-step ranks walk memory in order.

#include <cstdint>
#include <vector>

#include "sim/axis.hpp"
#include "sim/task_graph.hpp"

namespace epocast {

/// One instance of a task.
struct Instance {
  std::uint32_t task = 0;
  std::uint32_t rank = 0;  ///< or, of a task along an axis, the team
};

struct CompiledEdge {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  std::uint32_t lag : 31 = 0;
  bool to_quorum : 1 = false;  ///< joins ranks of whom only some are waited for
  std::uint32_t width = 1;     ///< tokens
  Axis from{}, to{};           ///< which tokens an instance at either end puts or takes: those of its team
  std::uint64_t first_token = 0;
};

struct CompiledTask {
  std::uint64_t first_instance = 0;
  std::uint32_t width = 1;
  std::uint32_t first_in = 0, in_count = 0;    ///< range of CompiledGraph::in
  std::uint32_t first_out = 0, out_count = 0;  ///< range of CompiledGraph::out
  std::int32_t first_slot = -1;                ///< of its queue; -1 if it waits for none
  bool one_slot = true;                        ///< all instances use the first slot
  Axis slots{};                                ///< else an instance needs those of its team, all at once
};

/// When a task becomes void, and what with it.
struct CompiledObsolescence {
  std::uint32_t task = 0;
  std::vector<std::uint32_t> joins;    ///< all of which must have started
  std::vector<std::uint32_t> follows;  ///< the task and what follows it in a rank's iteration
};

struct CompiledGraph {
  const CyclicTaskGraph* graph = nullptr;
  bool folded = false;  ///< every group is represented by its rank 0
  std::vector<CompiledTask> tasks;
  std::vector<CompiledEdge> edges;
  std::vector<std::uint32_t> in, out;       ///< edge indices by task
  std::vector<Discipline> slot_discipline;  ///< one per slot
  std::vector<CompiledObsolescence> obsolescences;
  std::uint64_t instances = 0;
  std::uint64_t tokens = 0;
  std::uint32_t max_lag = 0;

  const Task& task(std::uint32_t t) const { return graph->tasks()[t]; }
  /// Calls visit(slot) for the slots that the instance needs. REQUIRES: it waits for a queue.
  template <class Visit>
  void for_each_slot(Instance i, Visit visit) const {
    const CompiledTask& compiled = tasks[i.task];
    const auto first = static_cast<std::uint32_t>(compiled.first_slot);
    if (compiled.one_slot)
      visit(first);
    else
      compiled.slots.for_each_rank(i.rank, [&](std::uint32_t slot) { visit(first + slot); });
  }
  std::uint64_t instance_id(Instance i) const { return tasks[i.task].first_instance + i.rank; }
  /// The first rank of the instance's team.
  std::uint32_t first_rank(Instance i) const { return task(i.task).axis.first_rank(i.rank); }
  /// The device of a group that serves a rank: its own or, in a group of one, the only one.
  DeviceId device_of(GroupId group, std::uint32_t rank) const {
    const std::vector<DeviceId>& devices = graph->group(group).devices;
    return devices[devices.size() == 1 ? 0 : rank];
  }
  /// The device that the instance runs on or, of several, the first.
  DeviceId device(Instance i) const { return graph->group(task(i.task).ranks).devices[first_rank(i)]; }
};

/// Flattens a validated graph. With `folded`, each group is represented by its first rank.
/// Throws GraphError if a priority queue mixes collectives with other tasks, or those of different teams (it could
/// deadlock).
CompiledGraph compile(const CyclicTaskGraph& graph, bool folded);

}  // namespace epocast
