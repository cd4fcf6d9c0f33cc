#pragma once
// What it costs that other workers train in a phase than in the one before.

#include "experiments/scenario.hpp"
#include "sim/strategy.hpp"

namespace epocast {

/// The time and bytes before `step`'s phase begins in which devices are sent parameters and the optimizer's state that
/// they hold in it and have not held in the phase before. All who need a whole copy get it by one broadcast, carried
/// out as the study says; others, whose shares grow, from the workers before in turn. Nobody waits for those that
/// leave. What a device holds is what its memory has for good (MemoryUse::lasting). Nothing where workers read from
/// servers, or from shared memory, when their step begins: that is part of the step.
Joining joining_of(const ScenarioSetup& setup, SimEngine& engine, const TrainingStep& before, const TrainingStep& step,
                   const PhaseSettings& phase, const ExecutionOptions& how);

}  // namespace epocast
