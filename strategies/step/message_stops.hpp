#pragma once
// Where a stage stands still while its messages travel.

#include <vector>

#include "sim/task_graph.hpp"
#include "strategies/schedules/schedule.hpp"
#include "strategies/step/synchronisation.hpp"

namespace epocast {

/// By chunk and micro-batch.
template <class T>
using PassesOf = std::vector<std::vector<T>>;

/// The first and the last task of a pass.
struct PassTasks {
  Lanes first, last;
};

/// The pass that a pass's messages leave after, if not their own, and the one that waits for them. None: empty.
struct MessageStop {
  Lanes leaves, resumes;
};

struct MessageStops {
  PassesOf<MessageStop> forward, backward;
};

/// Of every pass of a stage with messages that block. As Megatron-LM has it (p2p_communication.py: wait, then
/// synchronise), each pass is followed by its messages; interleaved, a forward and a backward pass in turn by those of
/// both. `programs`, by stage, of whole passes; `forward` and `backward`, the tasks of each.
MessageStops message_stops(PipelineSchedule schedule, const std::vector<StageProgram>& programs,
                           const PassesOf<PassTasks>& forward, const PassesOf<PassTasks>& backward);

}  // namespace epocast
