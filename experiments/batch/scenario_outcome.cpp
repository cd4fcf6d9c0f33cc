#include "experiments/batch/scenario_outcome.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "platforms/probe.hpp"
#include "sim/error.hpp"
#include "sim/quantity.hpp"

namespace epocast {
namespace {

/// Why a process died, in words.
std::string death_notice(const JobOutcome& outcome) {
  const std::string said = outcome.errors.substr(0, outcome.errors.find('\n'));
  if (outcome.signal == SIGKILL)
    return "the simulating process was killed: probably out of memory; simulate fewer workers or fewer scenarios at a "
           "time (--jobs)";
  const std::string how = outcome.signal != 0 ? fmt::format("died ({})", strsignal(outcome.signal)) : "ended early";
  return fmt::format("internal error: the simulating process {}{}", how, said.empty() ? "" : ": " + said);
}

}  // namespace

ScenarioResult post_mortem(const Scenario& scenario, const Registries& registries, ScenarioResult failed) {
  try {
    probe_platform(read_scenario(scenario, registries).cluster);
  } catch (const ConfigError& problem) {
    return failed_scenario(scenario, 2, problem.what());
  } catch (const std::exception&) {  // the failure at hand is the news
  }
  return failed;
}

ScenarioResult failed_scenario(const Scenario& scenario, int exit_code, std::string message) {
  ScenarioResult result;
  result.study = scenario.study;
  result.scenario = scenario.name;
  result.axes = scenario.axes;
  result.exit_code = exit_code;
  result.error = std::move(message);
  return result;
}

// Exit codes are those of the command line.
ScenarioResult run_or_fail(const Scenario& scenario, const Registries& registries, const RunOptions& options) {
  try {
    return run_scenario(scenario, registries, options);
  } catch (const ConfigError& problem) {
    return failed_scenario(scenario, 2, problem.what());
  } catch (const GraphError& problem) {
    return failed_scenario(scenario, 3, std::string("internal error: malformed task graph: ") + problem.what());
  } catch (const SimulationError& problem) {
    return failed_scenario(scenario, 1, problem.what());
  } catch (const WrongEngine&) {
    throw;
  } catch (const std::bad_alloc&) {
    return failed_scenario(
        scenario, 1,
        "out of memory; simulate fewer workers, let interchangeable ones be folded, or use level: closed_form");
  } catch (const std::exception& problem) {
    return failed_scenario(scenario, 3, std::string("internal error: ") + problem.what());
  }
}

ScenarioResult after_death(const Scenario& scenario, const Registries& registries, const JobOutcome& outcome,
                           double seconds) {
  if (outcome.signal == SIGALRM)
    return failed_scenario(scenario, 1,
                           fmt::format("took longer than {}; raise --time-limit", to_string(Seconds(seconds))));
  const ScenarioResult failed = failed_scenario(scenario, outcome.signal == SIGKILL ? 1 : 3, death_notice(outcome));
  return failed.exit_code == 3 ? post_mortem(scenario, registries, failed) : failed;
}

}  // namespace epocast
