#pragma once
// Parameters of a chunk that have other replicas than the rest of it.

#include <vector>

#include "strategies/step/stages.hpp"

namespace epocast {

/// Some of a chunk's parameters, in all its layers.
struct ParameterPart {
  Chunk chunk;
  WorkloadTrace trace;
};

/// The experts, or all else. Updates take their share of a layer's by parameters.
ParameterPart part_of(const Chunk& chunk, const WorkloadTrace& trace, const std::vector<bool>& experts, bool wanted);

}  // namespace epocast
