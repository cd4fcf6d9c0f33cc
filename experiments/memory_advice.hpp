#pragma once
// What to do about a run that does not fit.

#include <string>
#include <vector>

#include "experiments/phase_run.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

/// A sentence for the phase that exceeds its devices' memory most: by how much, and what would help (the largest batch
/// per worker that fits, or computing activations again); "" if everything fits.
std::string memory_advice(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs);

/// The most by which a device's need exceeds its memory; 0 if everything fits.
Bytes memory_excess(const TrainingStep& step, const Cluster& cluster);

}  // namespace epocast
