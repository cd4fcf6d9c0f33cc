#pragma once
// Writes a layer-wise workload trace for people and other programs: what `epocast trace` prints.

#include <iosfwd>

#include "sim/workload_trace.hpp"

namespace epocast {

/// One row per layer with a line of column names. Times in seconds, on the slowest of its devices, and sizes in bytes
/// for the whole batch; `inputs` are names of layers joined by spaces, `gradient_tensors` a count. Numbers are written
/// so that they read back exactly.
void write_trace_csv(std::ostream& out, const WorkloadTrace& trace);

/// The same as one JSON object {model, batch, layers: [...]}, where `inputs` is a list of names and `gradients` lists
/// each tensor's name and bytes.
void write_trace_json(std::ostream& out, const WorkloadTrace& trace);

}  // namespace epocast
