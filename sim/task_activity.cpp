#include "sim/task_activity.hpp"

namespace epocast {

std::vector<DeviceId> TaskActivity::workers(std::size_t devices) const {
  std::vector<bool> computes(devices, false);
  for (const Queue& queue : graph_.graph->queues()) {
    if (queue.role == QueueRole::server) continue;
    const auto& of_queue = graph_.graph->group(queue.group).devices;
    for (std::size_t r = 0; r < (graph_.folded ? 1 : of_queue.size()); ++r)
      computes[static_cast<std::size_t>(of_queue[r])] = true;
  }
  std::vector<DeviceId> out;
  for (std::size_t d = 0; d < computes.size(); ++d)
    if (computes[d]) out.push_back(static_cast<DeviceId>(d));
  return out;
}

void TaskActivity::book(Instance i, double now, bool begins) {
  const Task& task = graph_.task(i.task);
  if (std::holds_alternative<Compute>(task.work)) {
    if (task.queue == QueueId::none) return;
    const DeviceId device = graph_.device(i);
    const QueueRole role = graph_.graph->queue(task.queue).role;
    if (role == QueueRole::compute)
      begins ? accounts_.compute_begins(device, now) : accounts_.compute_ends(device, now);
    else if (role == QueueRole::communication)  // such as copying a message
      begins ? accounts_.communication_begins(device, now) : accounts_.communication_ends(device, now);
    return;
  }
  const auto change = [&](DeviceId device) {
    begins ? accounts_.communication_begins(device, now) : accounts_.communication_ends(device, now);
  };
  if (std::holds_alternative<Transfer>(task.work)) {
    change(graph_.device(i));
  } else {
    const auto& devices = graph_.graph->group(task.ranks).devices;
    const std::size_t ranks = graph_.folded ? 1 : devices.size();
    for (std::size_t r = 0; r < ranks; ++r) change(devices[r]);
  }
}

}  // namespace epocast
