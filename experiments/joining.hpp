#pragma once
// What it costs that other workers train in a phase than in the one before.

#include "experiments/scenario.hpp"
#include "sim/strategy.hpp"

namespace epocast {

/// The time and bytes before `step`'s phase begins in which devices, servers among them, are sent parameters and the
/// optimizer's state that they hold in it and have not held in the phase before, layer by layer. All who lack the same
/// of what somebody has get it by one broadcast, carried out as the study says; others, whose shares grow, from the
/// devices before in turn. Nobody waits for those that leave. What a device holds is what its memory has for good
/// (MemoryUse::lasting). What workers read from servers or shared memory when their step begins is part of the step.
Joining joining_of(const ScenarioSetup& setup, SimEngine& engine, const TrainingStep& before, const TrainingStep& step,
                   const PhaseSettings& phase, const ExecutionOptions& how);

}  // namespace epocast
