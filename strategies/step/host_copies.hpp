#pragma once
// Stages of a pipeline that keep activations in their hosts' memory (costmodels/host_offload.hpp).
//
// A stage's device has a link and a buffer of its own. All passes under way on the stage, n at most, share the buffer:
// of a pass's activations o, which are those of its chunk's layers and what comes in, b = min(o, buffer / n) stay on
// the device. The others leave during the forward pass and come back during the backward pass, beside computing:
//
//     pass = max(compute, (o - b) / link); without overlap compute + o / link
//
// and its layers wait in proportion to what they keep. So the device holds b of each pass under way, and of one that
// runs two neighbouring layers at least. Where gradients of weights are made in passes of their own, these find what
// the gradients of activations were made from.
//
// Scope and limits: a stage that waits for others copies nothing meanwhile; exchanges within a pass hide no copies; how
// the network is cut into stages does not depend on the link's rate. Validation: tests/unit/pipeline_offload_test.cpp
// (by hand), tests/property/offload_test.cpp (links and buffers of all sizes).

#include <vector>

#include "sim/strategy.hpp"
#include "strategies/step/step_graph.hpp"

namespace epocast {

/// Of what a pass has offloaded, the part that is on the device all the time: b above.
Bytes stays_on_device(const HostLink& link, Bytes offloaded, int passes_under_way);

/// Takes the waiting for the link out of the times of a trace.
void take_out_copies(WorkloadTrace& trace);

/// Lets the passes of all chunks wait for their copies. Changes the chunks' times, and makes the plan refer to traces
/// with these times, which it returns. REQUIRES: the plan's chunks are made of its traces, whose copies were taken out.
std::vector<WorkloadTrace> wait_for_copies(StepPlan& plan, const StrategyContext& context);

}  // namespace epocast
