#include "sim/fusion.hpp"

#include <algorithm>
#include <utility>

namespace epocast {
namespace {

/// Whether two collectives may be carried out as one of both sizes.
bool alike(const Collective& a, const Collective& b) {
  return a.op == b.op && a.algorithm == b.algorithm && a.level == b.level && a.group == b.group && a.rings == b.rings &&
         (a.gamma > 0) == (b.gamma > 0) && a.measured.has_value() == b.measured.has_value();
}

}  // namespace

FusionQueues::FusionQueues(const CompiledGraph& graph, const NetworkPlan& network)
    : graph_(graph), network_(network), line_of_(graph.tasks.size(), -1), idle_times_(graph.tasks.size(), 0) {
  std::vector<std::int32_t> line_of_queue(graph.graph->queues().size(), -1);
  for (std::uint32_t t = 0; t < graph.tasks.size(); ++t) {
    const QueueId id = graph.task(t).queue;
    if (id == QueueId::none) continue;
    const Queue& queue = graph.graph->queue(id);
    if (!(queue.fusion_limit.value > 0)) continue;
    std::int32_t& first = line_of_queue[CyclicTaskGraph::index(id)];
    if (first < 0) {
      first = static_cast<std::int32_t>(lines_.size());
      lines_.resize(lines_.size() + graph.tasks[t].width, {queue.discipline, queue.fusion_limit.value, {}, {}, false});
    }
    line_of_[t] = first;
    idle_times_[t] = network.idle_time(t, 0);
  }
}

bool FusionQueues::enter(Instance i, std::uint64_t iteration) {
  Line& own = line(i);
  own.waiting.push_back({graph_.task(i.task).priority, iteration, arrivals_++, i});
  return own.running.empty() && !std::exchange(own.called, true);
}

FusionQueues::Fused FusionQueues::start(Instance i) {
  Line& own = line(i);
  own.called = false;
  std::ranges::sort(own.waiting,
                    [later = ServedLater{own.discipline}](const Waiting& a, const Waiting& b) { return later(b, a); });
  const Instance first = own.waiting.front().instance;
  double bytes = 0;
  for (const Waiting& next : own.waiting) {
    const Collective& work = collective(next.instance);
    if (!own.running.empty() && (!alike(work, collective(first)) || bytes + work.bytes.value > own.limit)) break;
    bytes += work.bytes.value;
    own.running.push_back(next.instance);
  }
  own.waiting.erase(own.waiting.begin(), own.waiting.begin() + static_cast<std::ptrdiff_t>(own.running.size()));
  const CollectivePlan& together =
      own.running.size() == 1 ? network_.collective(first.task, first.rank) : plan(first, bytes);
  for (const Instance member : own.running) idle_times_[member.task] = together.idle_time;
  return {own.running, &together};
}

std::vector<Instance> FusionQueues::end(Instance i, bool& again) {
  Line& own = line(i);
  again = !own.waiting.empty();
  own.called = again;
  return std::exchange(own.running, {});
}

/// Of `bytes` in all, beginning with this instance.
const CollectivePlan& FusionQueues::plan(Instance first, double bytes) {
  const auto [known, is_new] = plans_.try_emplace({first.task, first.rank, bytes});
  if (is_new) {
    Collective together = collective(first);
    together.bytes = Bytes(bytes);
    graph_.graph->tune(together, graph_.task(first.task).axis, first.rank);
    known->second = network_.plan_like(first.task, first.rank, together);
  }
  return known->second;
}

}  // namespace epocast
