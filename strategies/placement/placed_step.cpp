#include "strategies/placement/placed_step.hpp"

#include <optional>
#include <utility>

namespace epocast {
namespace {

class Writer {
 public:
  Writer(const PlacementGraph& graph, const Placement& placement, const std::vector<std::vector<DeviceId>>& devices,
         const PlacedStepOptions& options)
      : graph_(graph),
        placement_(placement),
        options_(options),
        task_(graph.size()),
        sent_(devices.size()),
        summed_(devices.size()) {
    for (const std::vector<DeviceId>& replicas : devices) {
      const std::string name = "device " + std::to_string(groups_.size());
      groups_.push_back(out_.add_group(name, replicas));
      compute_.push_back(out_.add_queue(name, groups_.back(), QueueRole::compute, Discipline::fifo));
      send_.push_back(out_.add_queue(name + " sends", groups_.back(), QueueRole::communication, Discipline::fifo));
      if (replicas.size() > 1 && !options.phases.empty())
        sum_.push_back(out_.add_queue(name + " sums", groups_.back(), QueueRole::communication, Discipline::fifo));
    }
  }

  CyclicTaskGraph write() {
    const TaskId begin = out_.compute_for(groups_.front(), QueueId::none, Seconds(0), {"begin", ""});
    for (std::uint32_t n = 0; n < graph_.size(); ++n) {
      const bool has_edges =
          graph_.in_begin[n] < graph_.in_begin[n + 1] || graph_.out_begin[n] < graph_.out_begin[n + 1];
      const DeviceTime time = options_.times.empty() ? Seconds(to_seconds(graph_.time[n])) : options_.times[n];
      if (!time.any() && !has_edges) continue;
      const std::size_t d = device_of(n);
      const Label label{"run", options_.names.empty() ? std::to_string(n) : options_.names[n]};
      task_[n] = time.any() ? out_.compute(compute_[d], time, label)
                            : out_.compute_for(groups_[d], QueueId::none, Seconds(0), label);
    }
    for (std::uint32_t n = 0; n < graph_.size(); ++n) connect(n, begin);
    const TaskId end = out_.compute_for(groups_.front(), QueueId::none, Seconds(0), {"end", ""});
    for (std::uint32_t n = 0; n < graph_.size(); ++n)
      if (task_[n] && graph_.out_begin[n] == graph_.out_begin[n + 1]) out_.after(*task_[n], end);
    out_.after(end, begin, 1);
    return std::move(out_);
  }

 private:
  std::size_t device_of(std::uint32_t n) const { return static_cast<std::size_t>(placement_[n]); }

  void connect(std::uint32_t n, TaskId begin) {
    if (!task_[n]) return;
    if (graph_.in_begin[n] == graph_.in_begin[n + 1]) out_.after(begin, *task_[n]);
    for (auto& sent : sent_) sent.reset();
    for (auto& sum : summed_) sum.reset();
    for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph_.to[e];
      const std::size_t from = device_of(n), to = device_of(v);
      if (from == to || graph_.bytes[e] <= 0) {
        out_.after(is_gradient(e) ? sum(*task_[n], to, e) : *task_[n], *task_[v]);
        continue;
      }
      const bool is_whole = graph_.bytes[e] >= graph_.output[n];
      std::optional<TaskId>& whole = sent_[to];
      TaskId transfer{};
      if (is_whole && whole) {
        transfer = *whole;
      } else {
        transfer = out_.transfer(groups_[from], send_[from], {groups_[from], groups_[to], Bytes(graph_.bytes[e])},
                                 {"send", out_.task(*task_[n]).label.layer});
        out_.after(*task_[n], transfer);
        if (is_whole) whole = transfer;
      }
      out_.after(is_gradient(e) ? sum(transfer, to, e) : transfer, *task_[v]);
    }
  }

  bool is_gradient(std::uint32_t e) const {
    return !sum_.empty() && graph_.bytes[e] > 0 && options_.phases[graph_.from[e]] == OperatorPhase::backward &&
           options_.phases[graph_.to[e]] == OperatorPhase::update;
  }

  /// Of a gradient on a device, over all replicas; once for all that read it there.
  TaskId sum(TaskId gradient, std::size_t device, std::uint32_t edge) {
    std::optional<TaskId>& known = summed_[device];
    if (known) return *known;
    const TaskId task =
        out_.collective(sum_[device], options_.collective.all_reduce(Bytes(graph_.bytes[edge]), groups_[device]),
                        {"all-reduce", out_.task(gradient).label.layer});
    out_.after(gradient, task);
    known = task;
    return task;
  }

  const PlacementGraph& graph_;
  const Placement& placement_;
  PlacedStepOptions options_;
  CyclicTaskGraph out_;
  std::vector<GroupId> groups_;
  std::vector<QueueId> compute_, send_, sum_;
  std::vector<std::optional<TaskId>> task_;
  std::vector<std::optional<TaskId>> sent_;    ///< by device: the transfer of all of the node's output
  std::vector<std::optional<TaskId>> summed_;  ///< by device: the sum of the node's output over replicas
};

}  // namespace

CyclicTaskGraph placed_step(const PlacementGraph& graph, const Placement& placement,
                            const std::vector<std::vector<DeviceId>>& devices, const PlacedStepOptions& options) {
  return Writer(graph, placement, devices, options).write();
}

}  // namespace epocast
