#pragma once
// Whether every rank's queues serve their tasks in the same order, so that one rank can stand for all.
//
// Program order is the same for all. Where the first ready task is served first, ranks could differ in what becomes
// ready at the same date: events of one date are taken by task, then by rank, so that what follows a join of all ranks
// becomes ready with the last rank's event, after what other ranks have set off by themselves. A queue of several ranks
// is safe if all of its tasks become ready in one of the two ways.

#include "sim/task_graph.hpp"

namespace epocast {

bool ranks_are_served_alike(const CyclicTaskGraph& graph);

}  // namespace epocast
