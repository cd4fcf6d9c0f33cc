#pragma once
// Random but valid task graphs: every kind of task, queue, discipline, edge and lag.

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sim/task_graph.hpp"

namespace epocast::testing {

/// Draws small graphs over `devices` devices. The same seed gives the same graph. With `ties`, durations are whole
/// milliseconds and sizes whole megabytes, so that unlike events fall on one date all the time. With `alike`, nothing
/// treats the ranks of a group differently: no messages, no servers, and collectives that load all links alike. So the
/// graph can be folded if its groups allow it; every device has queues of its own beside those of its groups.
class RandomGraph {
 public:
  RandomGraph(std::uint64_t seed, int devices, bool ties = false, bool alike = false)
      : random_(seed), devices_(devices), ties_(ties), alike_(alike) {}

  CyclicTaskGraph make() {
    add_groups();
    add_queues();
    const int tasks = 2 + below(9);
    for (int t = 0; t < tasks; ++t) add_task("task " + std::to_string(t));
    add_edges();
    return std::move(graph_);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(double p) { return between(0, 1) < p; }
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
  double duration() { return chance(0.1) ? 0 : 1e-3 * (ties_ ? 1 + below(9) : between(1, 9)); }
  double bytes() { return chance(0.05) ? 0 : 1e6 * (ties_ ? 1 + below(7) : between(1, 7)); }

  void add_groups() {
    const int width = 2 + below(devices_ - (alike_ ? 1 : 2));
    std::vector<DeviceId> all(static_cast<std::size_t>(devices_));
    std::iota(all.begin(), all.end(), 0);
    for (int g = 0; g < 2; ++g) {
      // Alike: half of the time the other group's devices, or none of them as far as that goes.
      if (alike_ && g == 1 && chance(0.5))
        std::rotate(all.begin(), all.begin() + below(2) * width, all.end());
      else
        std::shuffle(all.begin(), all.end(), random_);
      wide_.push_back(graph_.add_group("wide", {all.begin(), all.begin() + width}));
    }
    for (int g = 0; g < (alike_ ? devices_ : 2); ++g)
      single_.push_back(graph_.add_group("single", {alike_ ? g : below(devices_)}));
  }

  void add_queues() {
    std::vector<GroupId> groups = wide_;
    groups.insert(groups.end(), single_.begin(), single_.end());
    for (const GroupId group : groups) {
      // A priority queue takes either collectives or other tasks; this one takes no collectives.
      const auto discipline = Discipline(below(3));
      const QueueId work = graph_.add_queue("work", group, QueueRole::compute, discipline);
      const QueueId wire = graph_.add_queue("wire", group, QueueRole::communication, Discipline(below(3)));
      queues_.push_back({group, work, discipline, wire});
    }
  }

  void add_task(const std::string& name) {
    const auto& on = queues_[static_cast<std::size_t>(below(static_cast<int>(queues_.size())))];
    const bool wide = graph_.group(on.group).devices.size() > 1;
    TaskId task{};
    switch (below(4)) {
      case 0:
        if (!alike_ && !wide && on.discipline != Discipline::program_order) {  // a server works for each of its clients
          task = graph_.compute_for(wide_[static_cast<std::size_t>(below(2))], on.work, Seconds(duration()),
                                    {"serve", name});
          break;
        }
        [[fallthrough]];
      case 1: task = graph_.compute(on.work, Seconds(duration()), {"compute", name}); break;
      case 2: {
        if (alike_) return add_task(name);
        const GroupId from = wide_[static_cast<std::size_t>(below(2))];
        const GroupId to = chance(0.5) ? single_[static_cast<std::size_t>(below(2))] : wide_[from == wide_[0] ? 1 : 0];
        if (graph_.group(from).devices == graph_.group(to).devices) return add_task(name);
        task = graph_.transfer(from, QueueId::none,
                               chance(0.5) ? Transfer{from, to, Bytes(bytes())} : Transfer{to, from, Bytes(bytes())},
                               {"send", name});
        break;
      }
      default: {
        if (!wide) return add_task(name);
        const auto algorithm =
            alike_ || chance(0.5) ? CollectiveAlgorithm::ring : CollectiveAlgorithm::double_binary_tree;
        // A first-come queue may also serve collectives among other tasks; then they wait for all its ranks at once.
        const QueueId queue = on.discipline == Discipline::fifo && chance(0.5) ? on.work : on.wire;
        const auto level = alike_ ? (chance(0.5) ? CollectiveLevel::closed_form : CollectiveLevel::flow)
                                  : CollectiveLevel(below(3));  // automatic, message or flow
        task = graph_.collective(queue, {CollectiveOp::all_reduce, algorithm, level, on.group, Bytes(bytes()), 0},
                                 {"all-reduce", name});
      }
    }
    graph_.set_priority(task, below(3));
  }

  void add_edges() {
    const int tasks = static_cast<int>(graph_.tasks().size());
    // Forwards with any lag, and backwards with at least one; the last task holds back all others, so that none runs
    // away.
    for (int k = 0; k < 2 * tasks; ++k) {
      const int a = below(tasks), b = below(tasks);
      if (a != b) graph_.after(TaskId(a), TaskId(b), a < b ? below(2) : 1 + below(3));
    }
    for (int t = 0; t + 1 < tasks; ++t) {
      graph_.after(TaskId(t), TaskId(tasks - 1), 0);
      graph_.after(TaskId(tasks - 1), TaskId(t), 1 + below(3));
    }
  }

  struct Queues {
    GroupId group;
    QueueId work;
    Discipline discipline;
    QueueId wire;
  };
  std::mt19937_64 random_;
  int devices_;
  bool ties_, alike_;
  CyclicTaskGraph graph_;
  std::vector<GroupId> wide_, single_;
  std::vector<Queues> queues_;
};

}  // namespace epocast::testing
