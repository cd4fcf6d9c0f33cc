#include "sim/task_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/graph_limits.hpp"

namespace epocast {
namespace {

bool is_size(double value) { return std::isfinite(value) && value >= 0; }

/// What follows each task within an iteration.
class Followers {
 public:
  Followers(std::size_t tasks, const std::vector<Edge>& edges) : first_(tasks + 1, 0) {
    for (const Edge& e : edges) first_[CyclicTaskGraph::index(e.before) + 1] += e.lag == 0 ? 1 : 0;
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    after_.resize(first_.back());
    std::vector<std::uint32_t> end(first_.begin(), first_.end() - 1);
    for (const Edge& e : edges)
      if (e.lag == 0) after_[end[CyclicTaskGraph::index(e.before)]++] = e.after;
  }
  std::span<const TaskId> of(TaskId task) const {
    const std::size_t t = CyclicTaskGraph::index(task);
    return std::span(after_).subspan(first_[t], first_[t + 1] - first_[t]);
  }

 private:
  std::vector<std::uint32_t> first_;  ///< of after_, by task
  std::vector<TaskId> after_;
};

/// Tasks on one cycle whose edges all have lag 0, or nothing. Iterative depth-first search with colours.
std::vector<std::size_t> find_zero_lag_cycle(std::size_t tasks, const std::vector<Edge>& edges) {
  const Followers followers(tasks, edges);
  enum Colour : char { white, grey, black };
  std::vector<Colour> colour(tasks, white);
  for (std::size_t root = 0; root < tasks; ++root) {
    if (colour[root] != white) continue;
    std::vector<std::pair<std::size_t, std::size_t>> path{{root, 0}};  // task, next edge to follow
    colour[root] = grey;
    while (!path.empty()) {
      auto& [task, edge] = path.back();
      const std::span<const TaskId> next = followers.of(TaskId(task));
      if (edge == next.size()) {
        colour[task] = black;
        path.pop_back();
        continue;
      }
      const std::size_t to = CyclicTaskGraph::index(next[edge++]);
      if (colour[to] == grey) {
        std::vector<std::size_t> cycle;
        for (auto it = path.rbegin(); it != path.rend(); ++it) {
          cycle.push_back(it->first);
          if (it->first == to) break;
        }
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (colour[to] == white) {
        colour[to] = grey;
        path.emplace_back(to, 0);
      }
    }
  }
  return {};
}

void check_room(std::size_t tasks) {
  if (tasks < kMostTasks) return;
  throw GraphTooLarge(fmt::format("a step of more than {} tasks", kMostTasks));
}

/// Whether an edge, or two by way of a third task of the same ranks, make one task follow another; looks at a few.
bool follows(std::span<const Task> tasks, const Followers& followers, TaskId before, TaskId after) {
  constexpr std::size_t kFew = 8;
  const auto few_after = [&](TaskId task) {
    const std::span<const TaskId> all = followers.of(task);
    return all.first(std::min(all.size(), kFew));
  };
  const GroupId ranks = tasks[CyclicTaskGraph::index(before)].ranks;
  if (tasks[CyclicTaskGraph::index(after)].ranks != ranks) return false;
  return std::ranges::any_of(few_after(before), [&](TaskId between) {
    if (between == after) return true;
    const Task& task = tasks[CyclicTaskGraph::index(between)];
    return task.ranks == ranks && task.quorum == 0 && std::ranges::count(few_after(between), after) > 0;
  });
}

}  // namespace

std::string Label::text() const {
  std::string out = operation.text();
  if (!layer.empty()) out += (out.empty() ? "" : " ") + layer;
  if (micro_batch >= 0) out += fmt::format(" #{}", micro_batch);
  return out;
}

GroupId CyclicTaskGraph::add_group(std::string name, std::vector<DeviceId> devices) {
  groups_.push_back({std::move(name), std::move(devices)});
  return GroupId(groups_.size() - 1);
}

QueueId CyclicTaskGraph::add_queue(std::string name, GroupId group, QueueRole role, Discipline discipline) {
  queues_.push_back({std::move(name), group, role, discipline});
  return QueueId(queues_.size() - 1);
}

StoreId CyclicTaskGraph::add_store(std::string name, bool replicated, StoreId original) {
  stores_.push_back({std::move(name), replicated, original});
  return StoreId(stores_.size() - 1);
}

TaskId CyclicTaskGraph::add(Task task) {
  check_room(tasks_.size());
  task.step = step_;
  tasks_.push_back(std::move(task));
  ordered_.reset();
  return TaskId(tasks_.size() - 1);
}

TaskId CyclicTaskGraph::compute(QueueId queue, DeviceTime duration, const Label& label) {
  return compute_for(queues_.at(CyclicTaskGraph::index(queue)).group, queue, std::move(duration), label);
}

TaskId CyclicTaskGraph::compute_for(GroupId ranks, QueueId queue, DeviceTime duration, const Label& label) {
  return add({.label = label, .work = Compute{std::move(duration)}, .ranks = ranks, .queue = queue, .version = {}});
}

TaskId CyclicTaskGraph::transfer(GroupId ranks, QueueId queue, Transfer transfer, const Label& label) {
  return add({.label = label, .work = transfer, .ranks = ranks, .queue = queue, .version = {}});
}

TaskId CyclicTaskGraph::collective(QueueId queue, Collective collective, const Label& label) {
  const auto all = static_cast<std::uint32_t>(groups_.at(CyclicTaskGraph::index(collective.group)).devices.size());
  return collective_along({.stride = 1, .extent = all}, queue, collective, label);
}

TaskId CyclicTaskGraph::collective_along(Axis axis, QueueId queue, Collective collective, const Label& label) {
  return add(
      {.label = label, .work = collective, .ranks = collective.group, .axis = axis, .queue = queue, .version = {}});
}

TaskId CyclicTaskGraph::barrier_along(Axis axis, GroupId ranks, const Label& label) {
  const TaskId barrier = compute_for(ranks, QueueId::none, Seconds(0), label);
  tasks_[CyclicTaskGraph::index(barrier)].axis = axis;
  return barrier;
}

void CyclicTaskGraph::tune_collectives(std::function<void(Collective&, const Group&)> tuning) {
  tuning_ = std::move(tuning);
  // Layers and micro-batches repeat the same few.
  using Kind = std::tuple<CollectiveOp, CollectiveAlgorithm, CollectiveLevel, GroupId, double, double, int,
                          std::optional<double>, std::uint32_t, std::uint32_t>;
  std::map<Kind, Collective> known;
  for (Task& task : tasks_) {
    auto* c = std::get_if<Collective>(&task.work);
    if (c == nullptr) continue;
    const auto measured = c->measured ? std::optional(c->measured->value) : std::nullopt;
    const auto [at, is_new] = known.try_emplace({c->op, c->algorithm, c->level, c->group, c->bytes.value, c->gamma,
                                                 c->rings, measured, task.axis.stride, task.axis.extent},
                                                *c);
    if (is_new) tune(at->second, task.axis, 0);
    *c = at->second;
  }
}

void CyclicTaskGraph::tune(Collective& collective, Axis axis, std::uint32_t team) const {
  if (!tuning_) return;
  const Group& all = group(collective.group);
  if (axis.extent == all.devices.size()) return tuning_(collective, all);
  Group members{all.name, {}};
  axis.for_each_rank(team, [&](std::uint32_t rank) { members.devices.push_back(all.devices[rank]); });
  tuning_(collective, members);
}

void CyclicTaskGraph::measure_messages(const std::function<MeasuredMessage(Bytes)>& measured) {
  std::map<double, MeasuredMessage> known;
  for (Task& task : tasks_) {
    auto* transfer = std::get_if<Transfer>(&task.work);
    if (transfer == nullptr) continue;
    const auto [at, is_new] = known.try_emplace(transfer->bytes.value);
    if (is_new) at->second = measured(transfer->bytes);
    transfer->measured = at->second;
  }
}

void CyclicTaskGraph::after(TaskId before, TaskId after, int lag) {
  if (edges_.size() >= kMostEdges)
    throw GraphTooLarge(fmt::format("a step with more than {} dependencies between tasks", kMostEdges));
  edges_.push_back({before, after, lag});
  ordered_.reset();
}

int CyclicTaskGraph::width_of(TaskId id) const {
  return static_cast<int>(task(id).axis.teams(static_cast<std::uint32_t>(ranks_of(id))));
}

bool CyclicTaskGraph::ranks_are_independent() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [this](const Task& task) {
    return task.axis.extent == 1 && !std::holds_alternative<Collective>(task.work) &&
           group(task.ranks).devices.size() == group(tasks_.front().ranks).devices.size();
  });
}

const std::vector<Edge>& CyclicTaskGraph::edges_with_program_order() const {
  if (ordered_) return *ordered_;
  const Followers followers(tasks_.size(), edges_);
  std::vector<Edge>& all = ordered_.emplace();
  all.reserve(edges_.size() + tasks_.size());
  all.assign(edges_.begin(), edges_.end());
  std::vector<std::vector<TaskId>> in_order(queues_.size());
  for (std::size_t t = 0; t < tasks_.size(); ++t)
    if (const QueueId q = tasks_[t].queue; q != QueueId::none && queue(q).discipline == Discipline::program_order)
      in_order[CyclicTaskGraph::index(q)].push_back(TaskId(t));
  for (const auto& sequence : in_order) {
    for (std::size_t i = 1; i < sequence.size(); ++i)
      if (!obsolescences_.empty() || !follows(tasks_, followers, sequence[i - 1], sequence[i]))
        all.push_back({sequence[i - 1], sequence[i], 0});
    if (sequence.size() > 1) all.push_back({sequence.back(), sequence.front(), 1});
  }
  return all;
}

void CyclicTaskGraph::validate(const Cluster& cluster) const {
  if (tasks_.empty()) throw GraphError("the task graph has no tasks");

  const auto size_of = [&](GroupId id) { return groups_.at(CyclicTaskGraph::index(id)).devices.size(); };
  for (const Group& group : groups_) {
    if (group.devices.empty()) throw GraphError(fmt::format("group '{}' has no devices", group.name));
    std::set<DeviceId> seen;
    for (const DeviceId device : group.devices) {
      if (device < 0 || static_cast<std::size_t>(device) >= cluster.devices.size())
        throw GraphError(fmt::format("group '{}' names device {}, but platform '{}' has devices 0..{}", group.name,
                                     device, cluster.name, cluster.devices.size() - 1));
      if (!seen.insert(device).second)
        throw GraphError(fmt::format("group '{}' has device {} twice", group.name, device));
    }
  }
  for (const Queue& queue : queues_) {
    if (CyclicTaskGraph::index(queue.group) >= groups_.size())
      throw GraphError(fmt::format("queue '{}' has no group", queue.name));
    if (!queue.slowdown.empty() && queue.slowdown.size() != size_of(queue.group))
      throw GraphError(fmt::format("queue '{}' of {} ranks has a slowdown for {}", queue.name, size_of(queue.group),
                                   queue.slowdown.size()));
    for (const double factor : queue.slowdown)
      if (!is_size(factor)) throw GraphError(fmt::format("queue '{}' has a slowdown of {}", queue.name, factor));
  }

  std::vector<std::optional<Axis>> fused(queues_.size());  // along which its tasks are, by queue
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    const Task& task = tasks_[t];
    const auto name = [&] { return task.label.text(); };  // only when it is needed: there are many
    if (CyclicTaskGraph::index(task.ranks) >= groups_.size())
      throw GraphError(fmt::format("task '{}' has no group of ranks", name()));
    const std::size_t ranks = size_of(task.ranks);
    if (!task.axis.divides(static_cast<std::uint32_t>(ranks)))
      throw GraphError(fmt::format("task '{}' of {} ranks is along an axis of stride {} and extent {}", name(), ranks,
                                   task.axis.stride, task.axis.extent));

    if (task.queue != QueueId::none) {
      if (CyclicTaskGraph::index(task.queue) >= queues_.size())
        throw GraphError(fmt::format("task '{}' is on an unknown queue", name()));
      const Queue& q = queue(task.queue);
      const std::size_t queue_ranks = size_of(q.group);
      if (queue_ranks != ranks && queue_ranks != 1)
        throw GraphError(
            fmt::format("task '{}' of {} ranks is on queue '{}' of {} ranks", name(), ranks, q.name, queue_ranks));
      if (q.fusion_limit.value > 0 &&
          (q.discipline == Discipline::program_order || !std::holds_alternative<Collective>(task.work)))
        throw GraphError(
            fmt::format("task '{}' cannot be fused with others on queue '{}': only collectives can, first "
                        "come first served or by priority",
                        name(), q.name));
      if (q.fusion_limit.value > 0 && fused[CyclicTaskGraph::index(task.queue)].value_or(task.axis) != task.axis)
        throw GraphError(fmt::format("'{}' is fused with collectives of other teams on queue '{}'", name(), q.name));
      if (q.fusion_limit.value > 0) fused[CyclicTaskGraph::index(task.queue)] = task.axis;
      if (q.discipline == Discipline::program_order && queue_ranks != ranks)
        throw GraphError(fmt::format(
            "task '{}' of {} ranks shares the one queue '{}', which has no program order among ranks; make it "
            "first ready, first served",
            name(), ranks, q.name));
    } else if (std::holds_alternative<Compute>(task.work) && std::get<Compute>(task.work).duration.any()) {
      throw GraphError(fmt::format("computation '{}' is on no queue", name()));
    }
    if (task.version.store != StoreId::none && CyclicTaskGraph::index(task.version.store) >= stores_.size())
      throw GraphError(fmt::format("task '{}' names an unknown parameter store", name()));

    if (const auto* compute = std::get_if<Compute>(&task.work)) {
      if (task.axis.extent > 1 && (task.queue != QueueId::none || compute->duration.any()))
        throw GraphError(fmt::format("'{}' takes time or a queue, but a team computes rank by rank", name()));
      for (const Seconds time : {compute->duration.shortest(), compute->duration.longest()})
        if (!is_size(time.value)) throw GraphError(fmt::format("computation '{}' takes {} s", name(), time.value));
      for (const DeviceId device : group(task.queue == QueueId::none ? task.ranks : queue(task.queue).group).devices)
        if (!compute->duration.knows(device))
          throw GraphError(fmt::format("nothing says how long computation '{}' takes on device '{}'", name(),
                                       cluster.devices[CyclicTaskGraph::index(device)].name));
    } else if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
      if (!is_size(transfer->bytes.value))
        throw GraphError(fmt::format("transfer '{}' has {} bytes", name(), transfer->bytes.value));
      if (task.axis.extent > 1) throw GraphError(fmt::format("transfer '{}' is along an axis", name()));
      for (const GroupId end : {transfer->from, transfer->to})
        if (CyclicTaskGraph::index(end) >= groups_.size() || (size_of(end) != ranks && size_of(end) != 1))
          throw GraphError(fmt::format("transfer '{}' of {} ranks has an end of another size", name(), ranks));
      const auto& from = group(transfer->from).devices;
      const auto& to = group(transfer->to).devices;
      bool leaves = false;
      for (std::size_t r = 0; r < ranks; ++r) leaves |= from[from.size() == 1 ? 0 : r] != to[to.size() == 1 ? 0 : r];
      if (!leaves) throw GraphError(fmt::format("transfer '{}' is from every device to itself", name()));
    } else {
      const auto& collective = std::get<Collective>(task.work);
      if (!is_size(collective.bytes.value) || !is_size(collective.gamma))
        throw GraphError(
            fmt::format("collective '{}' has {} bytes, gamma {}", name(), collective.bytes.value, collective.gamma));
      if (collective.rings < 0)
        throw GraphError(fmt::format("collective '{}' is to run on {} rings", name(), collective.rings));
      if (collective.measured && !is_size(collective.measured->value))
        throw GraphError(fmt::format("collective '{}' was measured to take {} s", name(), collective.measured->value));
      if (task.axis.extent < 2)
        throw GraphError(fmt::format("collective '{}' is over a {} of one rank ('{}')", name(),
                                     ranks < 2 ? "group" : "team", group(task.ranks).name));
      if (!supports(collective.algorithm, collective.op))
        throw GraphError(fmt::format("collective '{}': {} cannot do {}", name(), to_string(collective.algorithm),
                                     to_string(collective.op)));
    }
  }

  for (const Edge& e : edges_) {
    if (CyclicTaskGraph::index(e.before) >= tasks_.size() || CyclicTaskGraph::index(e.after) >= tasks_.size())
      throw GraphError("an edge names an unknown task");
    const auto text = [&] {
      return fmt::format("'{}' -> '{}'", task(e.before).label.text(), task(e.after).label.text());
    };
    if (e.lag < 0) throw GraphError(fmt::format("edge {} has lag {}", text(), e.lag));
    if (ranks_of(e.before) == ranks_of(e.after)) continue;
    const int before = width_of(e.before), after = width_of(e.after);
    if (before == after) continue;
    if (before != 1 && after != 1)
      throw GraphError(fmt::format("edge {} is between {} and {} ranks", text(), before, after));
    // A task of one rank joins or fans out; a collective over another group would go unnoticed there.
    if ((before == 1 && ranks_of(e.before) > 1) || (after == 1 && ranks_of(e.after) > 1))
      throw GraphError(
          fmt::format("edge {} is between {} and {} ranks", text(), ranks_of(e.before), ranks_of(e.after)));
  }

  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    if (tasks_[t].quorum == 0) continue;
    const std::string name = tasks_[t].label.text();
    int ranks = 1;
    for (const Edge& e : edges_) {
      if (e.after != TaskId(t) || width_of(e.before) == 1) continue;
      if (ranks > 1 && width_of(e.before) != ranks)
        throw GraphError(fmt::format("join '{}' with a quorum joins {} and {} ranks", name, ranks, width_of(e.before)));
      ranks = width_of(e.before);
    }
    if (width_of(TaskId(t)) != 1) throw GraphError(fmt::format("task '{}' with a quorum is no join", name));
    if (tasks_[t].quorum < 1 || tasks_[t].quorum > ranks)
      throw GraphError(fmt::format("join '{}' of {} ranks has a quorum of {}", name, ranks, tasks_[t].quorum));
  }
  for (const Obsolescence& o : obsolescences_) {
    if (CyclicTaskGraph::index(o.task) >= tasks_.size() || CyclicTaskGraph::index(o.join) >= tasks_.size())
      throw GraphError("obsolescence of no task");
    if (width_of(o.join) != 1 || std::holds_alternative<Collective>(task(o.task).work))
      throw GraphError(
          fmt::format("task '{}' cannot become obsolete when '{}' starts: the one must be a task of "
                      "ranks, the other a join",
                      task(o.task).label.text(), task(o.join).label.text()));
  }

  if (const auto cycle = find_zero_lag_cycle(tasks_.size(), edges_with_program_order()); !cycle.empty()) {
    std::string names;
    for (const std::size_t t : cycle) names += "'" + tasks_[t].label.text() + "' -> ";
    throw GraphError("tasks wait for each other within one iteration: " + names + "'" +
                     tasks_[cycle.front()].label.text() + "'; one of these edges needs a lag of 1");
  }
}

}  // namespace epocast
