#pragma once
// Optimal split of a network into pipeline stages whose devices are not alike.
//
// Scope: as contiguous_split.hpp, where each stage's place is given: its replicas, and how long its devices take.
// Validation: equals exhaustive search on random networks, and split_contiguous on equal devices
// (tests/property/contiguous_split_test.cpp).

#include <vector>

#include "strategies/partitioners/contiguous_split.hpp"

namespace epocast {

/// The split with the smallest `slowest`, and among those the one that sends the fewest bytes. `of_stage`: for each of
/// options.replicas in turn the trace of the batch that they share, with the times of their devices; it stands for
/// options.trace_of. Each stage holds at least one layer that takes time. O(stages x layers^2). Throws SplitError.
ContiguousSplit split_unequal(const WorkloadTrace& trace, const SplitOptions& options,
                              const std::vector<const WorkloadTrace*>& of_stage);

}  // namespace epocast
