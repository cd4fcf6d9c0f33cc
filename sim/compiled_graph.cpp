#include "sim/compiled_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace epocast {
namespace {

/// Along which axis the tasks of a queue are, if it is one for all.
struct QueueUse {
  std::optional<Axis> axis;
  bool mixed = false;

  void add(const Axis& other) { mixed |= axis.value_or(other) != other, axis = other; }
};

/// Gives every queue that needs run-time state its slots, and every task its place in them.
void assign_slots(const CyclicTaskGraph& graph, CompiledGraph& out) {
  std::vector<QueueUse> use(graph.queues().size());
  for (const Task& task : graph.tasks())
    if (task.queue != QueueId::none) use[CyclicTaskGraph::index(task.queue)].add(task.axis);

  std::vector<std::int32_t> first(graph.queues().size(), -1);
  for (std::size_t q = 0; q < graph.queues().size(); ++q) {
    const Queue& queue = graph.queues()[q];
    if (queue.discipline == Discipline::program_order) continue;  // implied edges do it all
    if (queue.fusion_limit.value > 0) continue;                   // sim/fusion.hpp
    if (queue.discipline == Discipline::priority && use[q].mixed)
      throw GraphError(fmt::format(
          "priority queue '{}' mixes collectives with other tasks, or those of different teams; use two queues",
          queue.name));
    first[q] = static_cast<std::int32_t>(out.slot_discipline.size());
    // Ranks of a team whose queues hold only its collectives see one and the same sequence: one slot stands for all.
    auto slots = static_cast<std::uint32_t>(graph.group(queue.group).devices.size());
    if (!use[q].mixed) slots = use[q].axis.value_or(Axis{}).teams(slots);
    out.slot_discipline.insert(out.slot_discipline.end(), out.folded ? 1 : std::max(slots, 1U), queue.discipline);
  }
  for (std::size_t t = 0; t < out.tasks.size(); ++t) {
    const Task& task = graph.tasks()[t];
    if (task.queue == QueueId::none || first[CyclicTaskGraph::index(task.queue)] < 0) continue;
    CompiledTask& compiled = out.tasks[t];
    compiled.first_slot = first[CyclicTaskGraph::index(task.queue)];
    compiled.one_slot = out.folded || graph.group(graph.queue(task.queue).group).devices.size() == 1;
    if (!compiled.one_slot && use[CyclicTaskGraph::index(task.queue)].mixed) compiled.slots = task.axis;
  }
}

/// The tokens of an edge, and whose they are at either end.
void add_tokens(const CyclicTaskGraph& graph, const CompiledGraph& out, CompiledEdge& edge) {
  const Task &before = graph.task(TaskId(edge.before)), &after = graph.task(TaskId(edge.after));
  const std::uint32_t from = out.tasks[edge.before].width, to = out.tasks[edge.after].width;
  edge.width = std::max(from, to);
  if (from == to && (out.folded || before.axis == after.axis ||
                     graph.ranks_of(TaskId(edge.before)) != graph.ranks_of(TaskId(edge.after))))
    return;  // instance by instance
  if (from == 1 || to == 1) {
    if (from == 1) edge.from.extent = edge.width;
    if (to == 1) edge.to.extent = edge.width;
    return;
  }
  edge.width = static_cast<std::uint32_t>(graph.ranks_of(TaskId(edge.before)));
  edge.from = before.axis;
  edge.to = after.axis;
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
          compiled.task(edge.after).axis.extent > 1)
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

  const std::vector<Edge>& edges = graph.edges_with_program_order();
  out.edges.reserve(edges.size());
  for (const Edge& e : edges) {
    CompiledEdge edge{.before = static_cast<std::uint32_t>(e.before),
                      .after = static_cast<std::uint32_t>(e.after),
                      .lag = static_cast<std::uint32_t>(e.lag),
                      .first_token = out.tokens};
    add_tokens(graph, out, edge);
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
