#include "experiments/costs/scenario_costs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/words.hpp"

namespace epocast {
namespace {

/// The devices of a phase: its workers and, in `all`, those that serve them too.
struct PhaseMachines {
  Machines workers;
  Machines all;
};

PhaseMachines phase_machines(const ScenarioSetup& setup, const PhaseSettings& phase, const PhaseRun& run) {
  std::set<DeviceId> all(phase.workers.begin(), phase.workers.end());
  for (const Group& group : run.step.graph.groups()) all.insert(group.devices.begin(), group.devices.end());
  return {machines_of(setup.cluster, phase.workers),
          machines_of(setup.cluster, std::vector<DeviceId>(all.begin(), all.end()))};
}

double lengthened(const ScenarioSetup& setup, double useful, double nodes) {
  constexpr double kLeastGoodput = 1e-6;
  const FailureSetting& failures = *setup.costs.failures;
  const double total = expected_time(failures, useful, nodes, checkpoint_bytes(setup));
  if (total * kLeastGoodput < useful) return total;
  throw SimulationError(fmt::format(
      "training never ends: one of {} fails every {} on average, and hardly any checkpoint is reached between two "
      "failures; write checkpoints faster (failures.write) or more often (failures.checkpoint), or use fewer nodes",
      counted(nodes, "node"), to_string(Seconds(failures.node_mtbf / nodes))));
}

/// s that training stands still in a phase.
double paused(const ScenarioSetup& setup, const PhaseSettings& phase, const PhaseRun& run, const Machines& machines) {
  if (!setup.costs.pauses) return 0;
  const auto steps = static_cast<double>(run.iterations);
  const double seconds = run.result.total, epochs = static_cast<double>(phase.epochs);
  double out = 0;
  if (const auto& evaluation = setup.costs.pauses->evaluation) {
    const double passes = std::ceil(static_cast<double>(evaluation->samples) / static_cast<double>(run.batch));
    out += evaluation->every.times_in(seconds, steps, epochs) * passes * run.evaluation_step;
  }
  if (const auto& checkpoint = setup.costs.pauses->checkpoint)
    if (const double times = checkpoint->every.times_in(seconds, steps, epochs); times > 0)
      out += times * checkpoint->seconds(checkpoint_bytes(setup), machines.nodes, machines.devices, seconds / times);
  return out;
}

}  // namespace

double checkpoint_bytes(const ScenarioSetup& setup) {
  constexpr double kBytesPerValue = 4;
  return kBytesPerValue * static_cast<double>(setup.model.trained_count()) *
         (1 + optimizer_state_values(setup.optimizer));
}

void add_running_costs(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, ScenarioResult& out) {
  const RunningCosts& costs = setup.costs;
  double useful = 0, total = 0, money = 0, joules = 0;
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const PhaseRun& run = runs[p];
    const PhaseMachines machines = phase_machines(setup, setup.phases[p], run);
    const double training = run.joining.seconds + run.result.total;
    const double working = training + paused(setup, setup.phases[p], run, machines.workers);
    const double seconds = costs.failures ? lengthened(setup, working, machines.all.nodes) : working;
    useful += training;
    total += seconds;
    if (costs.price) money += rent(*costs.price, machines.all, seconds);
    if (!costs.power) continue;
    const double computing = run.result.iteration > 0 ? run.result.metrics.compute / run.result.iteration : 0;
    const double busy = computing * (1 - run.joining.seconds / working);  // nobody computes before all have joined
    const Machines serving{machines.all.devices - machines.workers.devices,
                           machines.all.nodes - machines.workers.nodes};
    joules += energy(*costs.power, machines.workers, seconds, busy) + energy(*costs.power, serving, seconds, 0);
  }
  if (costs.failures || costs.pauses) {
    out.goodput = useful / total;
    out.epoch_s *= total / out.total_s;
    out.total_s = total;
  }
  if (costs.price) {
    out.cost = money;
    out.currency = costs.price->currency;
  }
  if (!costs.power) return;
  out.energy_j = joules;
  if (costs.power->intensity) out.co2_kg = joules * *costs.power->intensity;
}

}  // namespace epocast
