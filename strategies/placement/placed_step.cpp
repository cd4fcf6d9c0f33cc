#include "strategies/placement/placed_step.hpp"

#include <optional>
#include <utility>

namespace epocast {
namespace {

class Writer {
 public:
  Writer(const PlacementGraph& graph, const Placement& placement, const std::vector<DeviceId>& devices,
         std::span<const std::string> names)
      : graph_(graph), placement_(placement), names_(names), task_(graph.size()), sent_(devices.size()) {
    for (const DeviceId device : devices) {
      const std::string name = "device " + std::to_string(groups_.size());
      groups_.push_back(out_.add_group(name, {device}));
      compute_.push_back(out_.add_queue(name, groups_.back(), QueueRole::compute, Discipline::fifo));
      send_.push_back(out_.add_queue(name + " sends", groups_.back(), QueueRole::communication, Discipline::fifo));
    }
  }

  CyclicTaskGraph write() {
    const TaskId begin = out_.compute_for(groups_.front(), QueueId::none, Seconds(0), {"begin", ""});
    for (std::uint32_t n = 0; n < graph_.size(); ++n) {
      const bool has_edges =
          graph_.in_begin[n] < graph_.in_begin[n + 1] || graph_.out_begin[n] < graph_.out_begin[n + 1];
      if (graph_.time[n] == 0 && !has_edges) continue;
      const std::size_t d = device_of(n);
      const Label label{"run", names_.empty() ? std::to_string(n) : names_[n]};
      task_[n] = graph_.time[n] > 0 ? out_.compute(compute_[d], Seconds(to_seconds(graph_.time[n])), label)
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
    for (std::uint32_t e = graph_.out_begin[n]; e < graph_.out_begin[n + 1]; ++e) {
      const std::uint32_t v = graph_.to[e];
      const std::size_t from = device_of(n), to = device_of(v);
      if (from == to || graph_.bytes[e] <= 0) {
        out_.after(*task_[n], *task_[v]);
        continue;
      }
      const bool is_whole = graph_.bytes[e] >= graph_.memory[n];
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
      out_.after(transfer, *task_[v]);
    }
  }

  const PlacementGraph& graph_;
  const Placement& placement_;
  std::span<const std::string> names_;
  CyclicTaskGraph out_;
  std::vector<GroupId> groups_;
  std::vector<QueueId> compute_, send_;
  std::vector<std::optional<TaskId>> task_;
  std::vector<std::optional<TaskId>> sent_;  ///< by device: the transfer of all of the node's output
};

}  // namespace

CyclicTaskGraph placed_step(const PlacementGraph& graph, const Placement& placement,
                            const std::vector<DeviceId>& devices, std::span<const std::string> names) {
  return Writer(graph, placement, devices, names).write();
}

}  // namespace epocast
