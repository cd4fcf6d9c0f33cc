#pragma once
// A message as a program sends it: copied to the network's buffers, and sent.

#include "sim/task_graph.hpp"

namespace epocast {

/// The tasks of a message; one and the same if nothing is copied.
struct MessageTasks {
  TaskId first{}, last{};
};

/// Adds a message from each device of `from` to its counterpart in `to`, on a queue of the senders. With `copy` seconds
/// per byte, not 0, it is copied (serialised, moved to the network's buffers) for that long before it goes on its way;
/// the receiver's copy takes as long, piece by piece as the sender's. Computations go on meanwhile.
MessageTasks add_message(CyclicTaskGraph& graph, QueueId queue, GroupId from, GroupId to, Bytes bytes, double copy,
                         const Label& label);

}  // namespace epocast
