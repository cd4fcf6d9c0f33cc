#pragma once
// What comes of a scenario, also if nothing comes of it.

#include <string>

#include "experiments/fork_pool.hpp"
#include "experiments/scenario.hpp"

namespace epocast {

/// The result of a scenario that is simulated in this process, or why there is none: then with an error text and an
/// exit code. Throws WrongEngine only.
ScenarioResult run_or_fail(const Scenario& scenario, const Registries& registries, const RunOptions& options);

/// A scenario without a result.
ScenarioResult failed_scenario(const Scenario& scenario, int exit_code, std::string message);

/// What is known of a scenario whose process ended early: if SimGrid does not survive the platform, that is the reason.
/// `seconds`: the limit of time that SIGALRM stands for.
ScenarioResult after_death(const Scenario& scenario, const Registries& registries, const JobOutcome& outcome,
                           double seconds);

/// What failed by no fault of the study, as it seems: if SimGrid does not survive the platform file, that is the
/// reason.
ScenarioResult post_mortem(const Scenario& scenario, const Registries& registries, ScenarioResult failed);

}  // namespace epocast
