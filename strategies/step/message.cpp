#include "strategies/step/message.hpp"

namespace epocast {

MessageTasks add_message(CyclicTaskGraph& graph, QueueId queue, GroupId from, GroupId to, Bytes bytes, double copy,
                         const Label& label) {
  MessageTasks tasks;
  if (copy > 0)
    tasks.first = graph.compute_for(from, queue, bytes.value * Seconds(copy), {"copy", label.layer, label.micro_batch});
  tasks.last = graph.transfer(from, queue, {from, to, bytes}, label);
  if (copy > 0)
    graph.after(tasks.first, tasks.last);
  else
    tasks.first = tasks.last;
  return tasks;
}

}  // namespace epocast
