#pragma once
// What to do about a run that does not fit.

#include <optional>
#include <string>
#include <vector>

#include "experiments/phase_run.hpp"
#include "experiments/scenario.hpp"
#include "experiments/study_change.hpp"

namespace epocast {

/// Recomputation and offloading that the study does not use yet; of a composition also smaller micro-batches, unequal
/// stages, sharded optimizers, and teams and pipelines of twice as many devices. Whether they fit, or go together at
/// all, is to be tried.
std::vector<StudyChange> memory_changes(const ConfigNode& study);

/// A sentence for the phase that exceeds its devices' memory most: by how much, and what would help (the largest batch
/// per worker that fits, and with the same batch `remedies`, fastest first; none if they were not looked for); "" if
/// everything fits.
std::string memory_advice(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs,
                          const std::optional<std::vector<Remedy>>& remedies);

/// A sentence for the node of whose memory offloading takes most over what the study allows; "" if none does.
std::string host_memory_advice(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs);

/// The most by which a device's need exceeds its memory; 0 if everything fits.
Bytes memory_excess(const TrainingStep& step, const Cluster& cluster);

}  // namespace epocast
