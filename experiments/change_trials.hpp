#pragma once
// Tries changes of a study, for advice.

#include <functional>
#include <optional>
#include <vector>

#include "experiments/study_change.hpp"

namespace epocast {

/// How long an iteration takes with a change [s]; nothing where the study does not fit then, or cannot be simulated.
using SimulateChange = std::function<std::optional<double>(const StudyChange&)>;

/// Of those changes with which a study fits: how long an iteration then takes, shortest first. Children simulate them,
/// `parallel` at a time. A change is left out where one that is milder fits.
std::vector<Remedy> try_changes(const std::vector<StudyChange>& changes, const SimulateChange& simulate, int parallel);

}  // namespace epocast
