#include "experiments/plan/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/costs/scenario_costs.hpp"
#include "experiments/learning/settings.hpp"
#include "experiments/memory_advice.hpp"
#include "sim/least_time.hpp"

namespace epocast {
namespace {

/// What so many iterations take at least under noise: four standard deviations below their mean, of those that are
/// simulated.
double share_under_noise(const NoiseModel& noise, double iterations) {
  const double drawn = std::min(iterations, static_cast<double>(ExecutionOptions().sample_iterations));
  const double least = 1 - 4 * std::max(noise.compute_cv, noise.transfer_cv) / std::sqrt(std::max(drawn, 1.0));
  return std::clamp(least, 0.0, 0.95);
}

/// The share of a bound that holds for what is simulated of a phase of so many iterations: nothing where updates leave
/// workers out or take steps from each other, or where what is learned decides how long the phase is.
double sure_share(const ScenarioSetup& setup, const CyclicTaskGraph& graph, double iterations) {
  constexpr double kOfEstimates = 0.99, kOfSums = 1 - 1e-9;
  const Irregularity& irregular = setup.irregularity;
  const bool faster =
      std::ranges::any_of(irregular.slowdown, [](double s) { return s < 1; }) ||
      std::ranges::any_of(irregular.slow_devices, [](const Disturbance& d) { return d.window.factor < 1; });
  const bool quorum = std::ranges::any_of(graph.tasks(), [](const Task& task) { return task.quorum > 0; });
  const bool open_ended = setup.learning && setup.learning->adaptive;
  if (faster || quorum || open_ended || setup.shards != Shards::fixed) return 0;
  if (irregular.noise.any()) return share_under_noise(irregular.noise, iterations);
  return graph.ranks_are_independent() ? kOfEstimates : kOfSums;  // which may have no period
}

LeastTime least_time_of(const ScenarioSetup& setup, const PhaseSettings& phase, const CyclicTaskGraph& graph,
                        SimEngine* engine) {
  const ExecutionOptions how = execution_options(setup, phase, setup.irregularity.seeds.front(), 0);
  const bool even =
      phase.shares.empty() && !how.noise.any() && how.slow_devices.empty() && how.slow_links.empty() &&
      std::adjacent_find(how.slowdown.begin(), how.slowdown.end(), std::not_equal_to<>()) == how.slowdown.end();
  try {
    return least_time(graph, setup.cluster, engine, how.costs, even);
  } catch (const std::runtime_error&) {  // the simulation will say why
    return engine == nullptr ? LeastTime() : least_time_of(setup, phase, graph, nullptr);
  }
}

/// s of an iteration that a worker computes, for energy: which counts the same share of all of training. So it is less
/// where all iterations take longer than so many of the least one, and where workers do not wait for each other, so
/// that the last take less than those before. How much training stands still or is done again depends on how long an
/// iteration really takes: then nothing is sure.
double least_computing(const ScenarioSetup& setup, const PhaseSettings& phase, const CyclicTaskGraph& graph,
                       const LeastTime& least, double iterations) {
  constexpr double kOfLoops = 0.95;
  if (setup.costs.failures || setup.costs.pauses) return 0;
  double sum = 0;
  for (const DeviceId worker : phase.workers)
    if (const auto own = least.computing.find(worker); own != least.computing.end()) sum += own->second;
  const double mean = sum / static_cast<double>(phase.workers.size());
  const double shorter = std::min(1.0, iterations * least.iteration() / least.total(iterations));
  return (graph.ranks_are_independent() ? kOfLoops : 1) * std::min(mean * shorter, least.iteration());
}

}  // namespace

CheapBounds cheap_bounds(const ScenarioSetup& setup, SimEngine* engine) {
  CheapBounds out;
  std::vector<PhaseRun> runs;
  double epochs = 0;
  for (const PhaseSettings& phase : setup.phases) {
    PhaseRun run;
    run.step = setup.compile(phase);
    out.excess = std::max(out.excess, memory_excess(run.step, setup.cluster).value);
    run.batch = static_cast<double>(phase.global_batch);
    run.iterations = phase.iterations;
    const auto iterations = static_cast<double>(run.rounds());
    if (const double sure = sure_share(setup, run.step.graph, iterations); sure > 0) {
      const LeastTime least = least_time_of(setup, phase, run.step.graph, engine);
      run.result.iteration = sure * least.iteration();
      run.result.total = sure * least.total(iterations) * run.share_of_rounds();
      run.result.metrics.compute = sure * least_computing(setup, phase, run.step.graph, least, iterations);
    }
    out.least.total_s += run.result.total;
    out.least.workers = static_cast<std::int64_t>(phase.workers.size());
    epochs += static_cast<double>(phase.epochs);
    runs.push_back(std::move(run));
  }
  out.fits = !(out.excess > 0);
  if (!(out.least.total_s > 0)) return out;
  add_running_costs(setup, runs, out.least);
  if (setup.learning && setup.learning->given)
    out.least.time_to_target_s =
        out.least.total_s / epochs * setup.learning->given->epochs_with(setup.phases.front().global_batch, 0);
  return out;
}

}  // namespace epocast
