#pragma once
// Memory timelines as CSV and JSON, for people and other tools.

#include <iosfwd>
#include <vector>

#include "sim/memory_timeline.hpp"

namespace epocast {

/// A row per moment: pass, layer, total_bytes, then bytes by purpose.
void write_memory_csv(std::ostream& out, const WorkloadTrace& trace, const std::vector<MemoryMoment>& timeline);

/// {"model": ..., "batch": ..., "moments": [...]} with the same fields.
void write_memory_json(std::ostream& out, const WorkloadTrace& trace, const std::vector<MemoryMoment>& timeline);

}  // namespace epocast
