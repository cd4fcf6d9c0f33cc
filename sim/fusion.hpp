#pragma once
// Collectives that wait together and run as one: what Horovod calls tensor fusion.
//
// Horovod's background thread looks once a cycle what all ranks have ready, and carries it out before it looks again
// (horovod/common/operations.cc, RunLoopOnce). Of what is ready it fuses one after the other while the sum stays within
// the fusion buffer, and no further once one does not fit (controller.cc, FuseResponses; docs/tensor-fusion). So
// whatever becomes ready during an exchange travels together after it. Here that is a property of a queue.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "sim/compiled_graph.hpp"
#include "sim/network_plan.hpp"
#include "sim/waiting.hpp"

namespace epocast {

/// The lines of all queues with a fusion limit: one for each team, all of whose ranks see the same sequence.
class FusionQueues {
 public:
  FusionQueues(const CompiledGraph& graph, const NetworkPlan& network);

  /// Whether the instance waits for such a queue.
  bool serves(Instance i) const { return line_of_[i.task] >= 0; }

  /// Puts an instance in line. Returns true if start() is to be called for it once all that happens on this date has
  /// happened: what becomes ready at the same time belongs together.
  bool enter(Instance i, std::uint64_t iteration);

  /// What runs together.
  struct Fused {
    std::span<const Instance> members;  ///< until they end
    const CollectivePlan* plan = nullptr;
  };
  /// Takes what comes next out of the line that `i` was in when enter() or end() returned true for it.
  Fused start(Instance i);
  /// Ends what runs on the queue of `i`, and returns its members. `again`: as the result of enter(), for members[0].
  std::vector<Instance> end(Instance i, bool& again);

  /// By task: s that it takes on an idle network, with those it last ran with. 0 of tasks that wait for no such queue.
  const std::vector<double>& idle_times() const { return idle_times_; }

 private:
  struct Line {
    Discipline discipline = Discipline::fifo;
    double limit = 0;  ///< B
    std::vector<Waiting> waiting;
    std::vector<Instance> running;
    bool called = false;  ///< start() will be
  };
  Line& line(Instance i) { return lines_[static_cast<std::size_t>(line_of_[i.task]) + i.rank]; }
  const Collective& collective(Instance i) const { return std::get<Collective>(graph_.task(i.task).work); }
  const CollectivePlan& plan(Instance first, double bytes);

  const CompiledGraph& graph_;
  const NetworkPlan& network_;
  std::vector<Line> lines_;
  std::vector<std::int32_t> line_of_;  ///< by task: of its first team; -1: none
  std::vector<double> idle_times_;     ///< by task
  /// By first task, team and bytes.
  std::map<std::tuple<std::uint32_t, std::uint32_t, double>, CollectivePlan> plans_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace epocast
