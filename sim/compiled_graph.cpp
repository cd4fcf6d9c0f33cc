#include "sim/compiled_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace epocast {
namespace {

template <class Id>
constexpr std::size_t idx(Id id) {
  return static_cast<std::size_t>(id);
}

bool is_collective(const Task& task) { return std::holds_alternative<Collective>(task.work); }

/// What kinds of tasks wait on a queue.
struct QueueUse {
  bool collectives = false;
  bool others = false;
};

/// Gives every queue that needs run-time state its slots, and every task its place in them.
void assign_slots(const CyclicTaskGraph& graph, CompiledGraph& out) {
  std::vector<QueueUse> use(graph.queues().size());
  for (const Task& task : graph.tasks())
    if (task.queue != QueueId::none)
      (is_collective(task) ? use[idx(task.queue)].collectives : use[idx(task.queue)].others) = true;

  std::vector<std::int32_t> first(graph.queues().size(), -1);
  std::vector<std::uint32_t> count(graph.queues().size(), 0);
  for (std::size_t q = 0; q < graph.queues().size(); ++q) {
    const Queue& queue = graph.queues()[q];
    if (queue.discipline == Discipline::program_order) continue;  // implied edges do it all
    if (queue.fusion_limit.value > 0) continue;                   // sim/fusion.hpp
    if (queue.discipline == Discipline::priority && use[q].collectives && use[q].others)
      throw GraphError(
          fmt::format("priority queue '{}' mixes collectives with other tasks; use two queues", queue.name));
    // Ranks whose queue holds only collectives see one and the same sequence: one slot stands for all.
    const bool one_slot = out.folded || !use[q].others;
    count[q] = one_slot ? 1 : static_cast<std::uint32_t>(graph.group(queue.group).devices.size());
    first[q] = static_cast<std::int32_t>(out.slot_discipline.size());
    out.slot_discipline.insert(out.slot_discipline.end(), count[q], queue.discipline);
  }
  for (std::size_t t = 0; t < out.tasks.size(); ++t) {
    const Task& task = graph.tasks()[t];
    if (task.queue == QueueId::none || first[idx(task.queue)] < 0) continue;
    CompiledTask& compiled = out.tasks[t];
    compiled.first_slot = first[idx(task.queue)];
    const std::uint32_t slots = count[idx(task.queue)];
    compiled.slot_stride = slots > 1 && !is_collective(task) ? 1 : 0;
    compiled.slot_count = is_collective(task) ? slots : 1;
  }
}

/// What a rank's edges of lag 0 reach from `head` without leaving the ranks, `head` included.
std::vector<std::uint32_t> followers(const CyclicTaskGraph& graph, const CompiledGraph& compiled, std::uint32_t head) {
  std::vector<std::uint32_t> reached{head};
  std::vector<bool> seen(compiled.tasks.size(), false);
  seen[head] = true;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const CompiledTask& task = compiled.tasks[reached[next]];
    for (std::uint32_t k = 0; k < task.out_count; ++k) {
      const CompiledEdge& edge = compiled.edges[compiled.out[task.first_out + k]];
      if (edge.lag > 0 || seen[edge.after]) continue;
      if (graph.width_of(TaskId(edge.after)) != graph.width_of(TaskId(head)) ||
          is_collective(compiled.task(edge.after)))
        continue;
      seen[edge.after] = true;
      reached.push_back(edge.after);
    }
  }
  return reached;
}

void add_obsolescences(const CyclicTaskGraph& graph, CompiledGraph& out) {
  for (const Obsolescence& o : graph.obsolescences()) {
    const auto task = static_cast<std::uint32_t>(o.task);
    auto known = std::find_if(out.obsolescences.begin(), out.obsolescences.end(),
                              [&](const CompiledObsolescence& c) { return c.task == task; });
    if (known == out.obsolescences.end())
      known = out.obsolescences.insert(known, {task, {}, followers(graph, out, task)});
    known->joins.push_back(static_cast<std::uint32_t>(o.join));
  }
}

}  // namespace

CompiledGraph compile(const CyclicTaskGraph& graph, bool folded) {
  CompiledGraph out;
  out.graph = &graph;
  out.folded = folded;

  out.tasks.resize(graph.tasks().size());
  for (std::size_t t = 0; t < out.tasks.size(); ++t) {
    out.tasks[t].width = folded ? 1 : static_cast<std::uint32_t>(graph.width_of(TaskId(t)));
    out.tasks[t].first_instance = out.instances;
    out.instances += out.tasks[t].width;
  }

  for (const Edge& e : graph.edges_with_program_order()) {
    CompiledEdge edge{static_cast<std::uint32_t>(e.before),
                      static_cast<std::uint32_t>(e.after),
                      static_cast<std::uint32_t>(e.lag),
                      1,
                      out.tokens,
                      false};
    edge.width = std::max(out.tasks[edge.before].width, out.tasks[edge.after].width);
    edge.to_quorum = graph.task(e.after).quorum > 0 && edge.width > 1 && out.tasks[edge.before].width > 1;
    out.tokens += edge.width;
    out.max_lag = std::max(out.max_lag, edge.lag);
    ++out.tasks[edge.before].out_count;
    ++out.tasks[edge.after].in_count;
    out.edges.push_back(edge);
  }
  std::uint32_t in = 0, outgoing = 0;
  for (CompiledTask& task : out.tasks) {
    task.first_in = in;
    task.first_out = outgoing;
    in += std::exchange(task.in_count, 0);
    outgoing += std::exchange(task.out_count, 0);
  }
  out.in.resize(in);
  out.out.resize(outgoing);
  for (std::uint32_t e = 0; e < out.edges.size(); ++e) {
    CompiledTask& before = out.tasks[out.edges[e].before];
    CompiledTask& after = out.tasks[out.edges[e].after];
    out.out[before.first_out + before.out_count++] = e;
    out.in[after.first_in + after.in_count++] = e;
  }

  assign_slots(graph, out);
  add_obsolescences(graph, out);
  return out;
}

}  // namespace epocast
