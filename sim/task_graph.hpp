#pragma once
// The one data structure of epocast: a training step as a cyclic task graph.
//
// Every task is replicated over the ranks of a group; a group of one device is the plain case. An edge says "after",
// rank by rank, with an iteration lag: lag 0 inside an iteration, lag 1 "after the previous iteration's". Between a
// task of P ranks and a task of one, an edge joins all ranks or fans out to them. The graph plus its lags describes an
// endless training loop in finite space (a timed marked graph: an edge with lag k starts with k tokens; a task fires
// when every incoming edge holds a token).
//
// The ranks of a group may be those of a grid (sim/axis.hpp). A collective or a barrier along an axis of it is one
// task, whatever the number of teams: each team runs an instance of its own. An edge between tasks of one group joins,
// rank by rank, the instance that a rank belongs to on one side with that on the other.
//
// Two things go beyond marked graphs, for synchronous training that does not wait for its slowest workers. A join with
// a quorum of k goes ahead with an iteration when k ranks have arrived for it; later arrivals for that iteration are
// absorbed. And a task can become obsolete: an instance whose turn comes after a join went ahead with the same
// iteration is void, as is everything of its rank that follows it in that iteration. What is void takes no time, sends
// nothing, touches no queue and no version. So a rank that comes late finishes what it has begun, its contribution is
// dropped, and it skips to the iteration that the others are in.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/axis.hpp"
#include "sim/cluster.hpp"
#include "sim/collective.hpp"
#include "sim/device_time.hpp"
#include "sim/name.hpp"
#include "sim/quantity.hpp"

namespace epocast {

enum class GroupId : std::int32_t {};
enum class QueueId : std::int32_t { none = -1 };
enum class TaskId : std::int32_t {};
enum class StoreId : std::int32_t { none = -1 };

/// Devices that do the same: the ranks of a task or of a collective, in rank order.
struct Group {
  std::string name;
  std::vector<DeviceId> devices;
};

/// What a queue's busy time counts as.
enum class QueueRole { compute, communication, server };

/// In which order a queue serves its tasks.
enum class Discipline {
  program_order,  ///< the order in which the strategy added them, iteration after iteration
  fifo,           ///< first ready, first served
  priority,       ///< the ready task with the smallest priority number; ties by iteration, then by readiness
};

/// Runs one task at a time. A queue over a group is one independent queue per rank.
struct Queue {
  std::string name;
  GroupId group{};
  QueueRole role = QueueRole::compute;
  Discipline discipline = Discipline::program_order;
  std::vector<double> slowdown = {};  ///< factor on its computations by rank; empty: all 1
  Bytes fusion_limit = {};  ///< of collectives that wait together: they run as one of so much at most; 0: one by one
  bool steady = false;      ///< its computations take as long whatever slows, stops or disturbs its devices
};

/// What a task is called in every output.
struct Label {
  Name operation;  ///< "forward", "backward", "all-reduce", "push", "update", ...
  Name layer;      ///< "conv5_3", or "" for work on the whole model
  int micro_batch = -1;

  std::string text() const;  ///< "backward conv5_3"
};

/// Work on a device for a time that is fixed for the device.
struct Compute {
  DeviceTime duration;  ///< known for every device that does it: the queue's, or else the rank's
  double parts = 1;     ///< of equal length, each of which varies by itself under noise
  int steps = 1;        ///< of training, from the task's own on, that it is the work of
};

/// How long a message takes that is alone, as measured on a real machine; nothing where it was not.
struct MeasuredMessage {
  std::optional<Seconds> within_node, across_nodes;
};

/// A message of so many bytes: rank r of `from` sends to rank r of `to` (a group of one serves all ranks).
/// Costs the route's latency, then shares links max-min fairly. Between devices of the same name it is free.
struct Transfer {
  GroupId from{};
  GroupId to{};
  Bytes bytes;
  /// What a message takes longer than its bytes need at the rate of its links is a delay before them, instead of the
  /// latency: so it takes what was measured if it is alone, and loads its links with its bytes if not.
  MeasuredMessage measured = {};
};

/// A collective over the ranks of `group`, or over those of each team. It starts when all of them have reached it and
/// ends on all at once.
struct Collective {
  CollectiveOp op = CollectiveOp::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  CollectiveLevel level = CollectiveLevel::automatic;
  GroupId group{};
  Bytes bytes;       ///< see CollectiveSchedule for what it means per operation
  double gamma = 0;  ///< s per byte reduced
  /// Takes this long, as measured on a real machine, whatever the platform's links say. Its bytes are still those of
  /// the algorithm, but they load no links.
  std::optional<Seconds> measured = std::nullopt;
  int rings = 0;  ///< of an algorithm that has_rings(): over so many the vector is divided; 0: as many as carry more
};

using Work = std::variant<Compute, Transfer, Collective>;

/// A set of parameters whose versions are counted: each write makes a new one.
struct Store {
  std::string name;
  bool replicated = false;  ///< every rank has a copy, whose versions only its own writes count
  /// Of a replicated one: what it is copied from. Each write of a rank is the end of a copy, which began when the rank
  /// read the original in the same iteration; each read of the copy is one of the original, as it was then.
  StoreId original = StoreId::none;
};

/// Reading or writing a set of parameters, for counting staleness in versions. A write of some iteration belongs to its
/// rank's last read of that iteration or an earlier one.
struct VersionEffect {
  StoreId store = StoreId::none;
  enum Kind { read_at_start, write_at_end } kind = read_at_start;
};

struct Task {
  Label label;
  Work work;
  GroupId ranks{};
  Axis axis{};                    ///< one instance for each team; a plain collective's team is all ranks
  QueueId queue = QueueId::none;  ///< none: starts as soon as it is ready
  int priority = 0;
  VersionEffect version;
  int quorum = 0;  ///< of a join: how many ranks it waits for; 0: all
  int step = 0;    ///< of training, among those of the iteration
};

/// Void from when on: see CyclicTaskGraph::obsolete_after.
struct Obsolescence {
  TaskId task{};
  TaskId join{};
};

struct Edge {
  TaskId before{};
  TaskId after{};
  int lag = 0;
};

/// Builder and container. Ids are dense indices into the vectors below.
class CyclicTaskGraph {
 public:
  /// Makes room for so many, which saves time and changes nothing.
  void reserve(std::size_t tasks, std::size_t edges) {
    tasks_.reserve(tasks);
    edges_.reserve(edges);
  }
  /// REQUIRES (checked by validate): at least one device, no device twice.
  GroupId add_group(std::string name, std::vector<DeviceId> devices);
  QueueId add_queue(std::string name, GroupId group, QueueRole role, Discipline discipline);
  /// Makes the queue's computations take so many times longer, rank by rank: what else its devices do slows them down.
  void set_slowdown(QueueId queue, std::vector<double> by_rank) { queues_[index(queue)].slowdown = std::move(by_rank); }
  /// Its computations take as long whatever becomes of its devices, which only stand for something else.
  void set_steady(QueueId queue) { queues_[index(queue)].steady = true; }
  /// Collectives that wait for the queue when it becomes free run together, in the order of its discipline: the first,
  /// and those behind it that are of the same kind, up to `limit` bytes in all.
  void set_fusion(QueueId queue, Bytes limit) { queues_[index(queue)].fusion_limit = limit; }
  StoreId add_store(std::string name, bool replicated = false, StoreId original = StoreId::none);
  /// What is added from now on is of this step of training, of an iteration that has one more at least. 0 at first.
  void begin_step(int step) {
    step_ = step;
    steps_ = std::max(steps_, step + 1);
  }

  /// One computation per rank of the queue's group.
  TaskId compute(QueueId queue, DeviceTime duration, const Label& label);
  /// One computation per rank of `ranks` on a queue of one device, e.g. a server working for each worker in turn.
  TaskId compute_for(GroupId ranks, QueueId queue, DeviceTime duration, const Label& label);
  /// One message per rank of `ranks`.
  TaskId transfer(GroupId ranks, QueueId queue, Transfer transfer, const Label& label);
  TaskId collective(QueueId queue, Collective collective, const Label& label);
  /// One collective for each team of the axis, all alike.
  TaskId collective_along(Axis axis, QueueId queue, Collective collective, const Label& label);
  /// A barrier for each team of the axis: it takes no time and no queue.
  TaskId barrier_along(Axis axis, GroupId ranks, const Label& label);

  /// `after` starts when `before` of `lag` iterations ago has ended, rank by rank. Between groups of different sizes
  /// that have equally many instances: instance by instance.
  void after(TaskId before, TaskId after, int lag = 0);
  /// `join`, a task of one rank after tasks of P ranks, starts its iteration n once `quorum` (1..P) ranks have arrived:
  /// a rank has when all its edges into the join hold iteration n's token. Edges from tasks of one rank stay conditions
  /// of their own. The others' arrivals for iteration n are absorbed as they come.
  void set_quorum(TaskId join, int quorum) {
    tasks_[index(join)].quorum = quorum;
    ordered_.reset();
  }
  /// Iteration n of `task` is void for a rank if the rank's turn comes after `join` has got its quorum for iteration n;
  /// so are all tasks of that rank that follow in iteration n: those that edges of lag 0 reach from `task` without
  /// leaving the ranks. Given several joins, all must have theirs. On the first task of a rank's iteration (which
  /// should also follow the last ones of the rank's previous iteration) this means that obsolete iterations are skipped
  /// at no cost; on a server's work for a contribution, that a late one is dropped unseen.
  void obsolete_after(TaskId task, TaskId join) {
    obsolescences_.push_back({task, join});
    ordered_.reset();
  }
  void set_priority(TaskId task, int priority) { tasks_[index(task)].priority = priority; }
  /// See Compute. REQUIRES: the task is a computation; at least one part and one step.
  void set_parts(TaskId task, double parts, int steps = 1) {
    auto& compute = std::get<Compute>(tasks_[index(task)].work);
    compute.parts = parts;
    compute.steps = steps;
  }
  /// Sets what follows from a collective's size and from the devices of a team: now for all of the graph by their first
  /// team, later for other teams and for those that run as one. Setting it again must change nothing.
  void tune_collectives(std::function<void(Collective&, const Group&)> tuning);
  void tune(Collective& collective, Axis axis, std::uint32_t team) const;
  /// Sets what messages of each size take that are alone.
  void measure_messages(const std::function<MeasuredMessage(Bytes)>& measured);
  void set_version_effect(TaskId task, VersionEffect effect) { tasks_[index(task)].version = effect; }

  std::span<const Group> groups() const { return groups_; }
  std::span<const Queue> queues() const { return queues_; }
  std::span<const Task> tasks() const { return tasks_; }
  std::span<const Edge> edges() const { return edges_; }
  std::span<const Store> stores() const { return stores_; }
  std::span<const Obsolescence> obsolescences() const { return obsolescences_; }
  /// Of training, in an iteration.
  int steps() const { return steps_; }

  const Group& group(GroupId id) const { return groups_[index(id)]; }
  const Queue& queue(QueueId id) const { return queues_[index(id)]; }
  const Task& task(TaskId id) const { return tasks_[index(id)]; }

  /// Ranks of the task's group, and how many instances of it run: one for each team.
  int ranks_of(TaskId id) const { return static_cast<int>(group(task(id).ranks).devices.size()); }
  int width_of(TaskId id) const;

  /// Whether no rank ever waits for another but in a queue or on a link: all tasks are of equally many ranks, and none
  /// is a collective. Then ranks can do different numbers of iterations.
  bool ranks_are_independent() const;

  /// Throws GraphError for: no tasks; a device the cluster does not have; an empty group or one with a device twice; a
  /// collective over one rank or by an algorithm that cannot do the operation; a transfer from each device to itself;
  /// an axis that does not divide its group; edges, queues or slowdowns between groups of different sizes; negative or
  /// non-finite durations, sizes, lags or slowdowns; a computation whose time is not known on its device; a quorum that
  /// its task cannot have; fusion of anything but collectives of the same teams on a queue that has a line;
  /// obsolescence of a task that is not one of several ranks, or by one that is; a cycle of lag 0 (program order
  /// included), naming the tasks on it.
  void validate(const Cluster& cluster) const;

  /// edges() plus those that program-order queues imply, but where two edges imply the same.
  const std::vector<Edge>& edges_with_program_order() const;

  template <class Id>
  static constexpr std::size_t index(Id id) {
    return static_cast<std::size_t>(id);
  }

 private:
  TaskId add(Task task);

  std::vector<Group> groups_;
  std::vector<Queue> queues_;
  std::vector<Task> tasks_;
  std::vector<Edge> edges_;
  std::vector<Store> stores_;
  std::vector<Obsolescence> obsolescences_;
  int step_ = 0, steps_ = 1;
  std::function<void(Collective&, const Group&)> tuning_;
  mutable std::optional<std::vector<Edge>> ordered_;  ///< edges_with_program_order(), once asked for
};

/// A malformed graph: a mistake of a strategy, or of options that a strategy did not check.
class GraphError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace epocast
