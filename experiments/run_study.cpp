#include "experiments/run_study.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "experiments/fork_pool.hpp"
#include "experiments/large_pages.hpp"
#include "platforms/probe.hpp"
#include "sim/error.hpp"

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

/// What ended by no fault of the study, as it seems: if SimGrid does not survive the platform file, that is the reason.
ScenarioResult post_mortem(const Scenario& scenario, const Registries& registries, ScenarioResult failed) {
  try {
    probe_platform(read_scenario(scenario, registries).cluster);
  } catch (const ConfigError& problem) {
    return failed_scenario(scenario, 2, problem.what());
  } catch (const std::exception&) {  // the failure at hand is the news
  }
  return failed;
}

}  // namespace

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

ScenarioResult after_death(const Scenario& scenario, const Registries& registries, const JobOutcome& outcome) {
  const ScenarioResult failed = failed_scenario(scenario, outcome.signal == SIGKILL ? 1 : 3, death_notice(outcome));
  return failed.exit_code == 3 ? post_mortem(scenario, registries, failed) : failed;
}

void run_study(const std::vector<Scenario>& scenarios, const Registries& registries, const RunOptions& options,
               int parallel, const Progress& progress, std::vector<ScenarioResult>& results) {
  results.assign(scenarios.size(), {});
  StudyProgress state{.of = scenarios.size()};
  const auto job = [&](int i) {
    use_large_pages();
    const auto index = static_cast<std::size_t>(i);
    RunOptions own = options;
    own.progress = report_progress;
    if (scenarios.size() > 1 && !own.trace_file.empty())
      own.trace_file.replace_filename(
          fmt::format("{}-{}{}", own.trace_file.stem().string(), i + 1, own.trace_file.extension().string()));
    return serialize(run_or_fail(scenarios[index], registries, own));
  };
  const auto done = [&](int i, const JobOutcome& outcome) {
    const auto index = static_cast<std::size_t>(i);
    ScenarioResult& result = results[index];
    result = outcome.finished ? deserialize(outcome.output) : after_death(scenarios[index], registries, outcome);
    if (outcome.finished && result.exit_code == 3) result = post_mortem(scenarios[index], registries, result);
    ++state.done;
    if (!progress) return;
    state.share = static_cast<double>(state.done) / static_cast<double>(state.of);
    state.latest = &result;
    state.index = index;
    progress(state);
    state.latest = nullptr;
  };
  const auto passing = [&](double running) {
    state.share = (static_cast<double>(state.done) + running) / static_cast<double>(state.of);
    progress(state);
  };
  run_forked(static_cast<int>(scenarios.size()), parallel, job, done, progress ? JobProgress(passing) : JobProgress());
}

std::vector<ScenarioResult> run_study(const std::vector<Scenario>& scenarios, const Registries& registries,
                                      const RunOptions& options, int parallel, const Progress& progress) {
  std::vector<ScenarioResult> results;
  run_study(scenarios, registries, options, parallel, progress, results);
  return results;
}

}  // namespace epocast
