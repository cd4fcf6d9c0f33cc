#include "sim/task_activity.hpp"

namespace epocast {

std::vector<CountedDevice> TaskActivity::workers(std::size_t devices) const {
  std::vector<bool> computes(devices, false);
  for (const Queue& queue : graph_.graph->queues()) {
    if (queue.role == QueueRole::server) continue;
    for (const DeviceId device :
         classes_ ? classes_->representatives(queue.group) : graph_.graph->group(queue.group).devices)
      computes[static_cast<std::size_t>(device)] = true;
  }
  std::vector<CountedDevice> out;
  for (DeviceId d = 0; d < static_cast<DeviceId>(devices); ++d)
    if (computes[static_cast<std::size_t>(d)]) out.push_back({d, classes_ ? classes_->size(d) : 1});
  return out;
}

template <class Change>
void TaskActivity::for_each_device(Instance i, Change change) const {
  const GroupId ranks = graph_.task(i.task).ranks;
  const std::vector<DeviceId>& all = graph_.graph->group(ranks).devices;
  if (classes_)
    for (const DeviceId device : classes_->representatives(ranks)) change(device);
  else
    graph_.task(i.task).axis.for_each_rank(i.rank, [&](std::uint32_t rank) { change(all[rank]); });
}

void TaskActivity::book(Instance i, double now, bool begins) {
  const Task& task = graph_.task(i.task);
  bool computes = false;
  if (std::holds_alternative<Compute>(task.work)) {
    if (task.queue == QueueId::none) return;
    const QueueRole role = graph_.graph->queue(task.queue).role;
    if (role == QueueRole::server) return;
    computes = role == QueueRole::compute;  // or it copies a message, which is communication
  }
  for_each_device(i, [&](DeviceId device) {
    if (computes)
      begins ? accounts_.compute_begins(device, now) : accounts_.compute_ends(device, now);
    else
      begins ? accounts_.communication_begins(device, now) : accounts_.communication_ends(device, now);
  });
}

}  // namespace epocast
