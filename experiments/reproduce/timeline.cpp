#include "experiments/reproduce/timeline.hpp"

#include <nlohmann/json.hpp>

#include "experiments/fork_pool.hpp"
#include "sim/error.hpp"
#include "sim/executor.hpp"

namespace epocast {
namespace {

std::string run_and_pack(const Scenario& scenario, const TargetContext& context) {
  const ScenarioSetup setup = read_scenario(scenario, context.registries);
  const PhaseSettings& phase = setup.phases.front();
  const TrainingStep step = setup.strategy->compile(setup.context(phase));
  SimEngine engine(setup.cluster);
  const ExecutionResult result = execute(step.graph, setup.cluster, engine,
                                         {.iterations = phase.iterations / step.steps,
                                          .exact = true,
                                          .fold = false,
                                          .noise = setup.irregularity.noise,
                                          .slowdown = setup.irregularity.slowdown,
                                          .slow_devices = setup.irregularity.slow_devices,
                                          .slow_links = setup.irregularity.slow_links,
                                          .record_timeline = true});
  nlohmann::json packed = nlohmann::json::array();
  for (const Interval& i : result.timeline.intervals)
    packed.push_back({step.graph.tasks()[i.task].label.operation, i.rank, i.iteration, i.start, i.end});
  return packed.dump();
}

}  // namespace

std::vector<TimelineEntry> simulate_timeline(const Scenario& scenario, const TargetContext& context) {
  read_scenario(scenario, context.registries);  // throws here what is wrong with it
  std::vector<TimelineEntry> out;
  run_forked(
      1, 1, [&](int) { return run_and_pack(scenario, context); },
      [&](int, const JobOutcome& outcome) {
        if (!outcome.finished) throw SimulationError(scenario.name + ": cannot be simulated: " + outcome.errors);
        for (const auto& entry : nlohmann::json::parse(outcome.output))
          out.push_back({entry[0], entry[1], entry[2], entry[3], entry[4]});
      });
  return out;
}

}  // namespace epocast
