#include "experiments/costs/scenario_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
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

/// What `useful` of `all` s of training take where nodes fail.
double lengthened(const ScenarioSetup& setup, double useful, double all, double nodes) {
  constexpr double kLeastGoodput = 1e-6;
  const FailureSetting& failures = *setup.costs.failures;
  const double total = expected_time(failures, useful, all, nodes, checkpoint_bytes(setup));
  if (total * kLeastGoodput < useful) return total;
  throw SimulationError(fmt::format(
      "training never ends: one of {} fails every {} on average, and hardly any checkpoint is reached between two "
      "failures; write checkpoints faster (failures.write) or more often (failures.checkpoint), or use fewer nodes",
      counted(nodes, "node"), to_string(Seconds(failures.node_mtbf / nodes))));
}

/// Goes through the phases of a run, whose intervals between pauses go on from one phase to the next.
class PauseClock {
 public:
  explicit PauseClock(const ScenarioSetup& setup) : setup_(setup) {}

  /// s that training stands still in the next phase.
  double next(const PhaseSettings& phase, const PhaseRun& run, const Machines& machines) {
    if (!setup_.costs.pauses) return 0;
    const Progress before = done_;
    done_.seconds += run.result.total;
    done_.steps += static_cast<double>(run.iterations);
    done_.epochs += static_cast<double>(phase.epochs);
    double out = 0;
    if (const auto& evaluation = setup_.costs.pauses->evaluation) {
      // Nobody's samples are dropped, whatever training does.
      const double passes =
          std::ceil(static_cast<double>(evaluation->samples) / static_cast<double>(phase.global_batch));
      out += (times(evaluation->every, done_) - times(evaluation->every, before)) * passes * run.evaluation_step;
    }
    if (const auto& checkpoint = setup_.costs.pauses->checkpoint) {
      const PauseInterval& every = checkpoint->every;
      const double there = times(every, before), added = times(every, done_) - there;
      unsaved_ += run.result.total;
      if (!(added > 0)) return out;
      const double begun = std::max(0.0, intervals(every, done_) - there - added);
      const double after_last = run.result.total * begun / (intervals(every, done_) - intervals(every, before));
      out += added * checkpoint->seconds(checkpoint_bytes(setup_), machines.nodes, machines.devices,
                                         (unsaved_ - after_last) / added);
      unsaved_ = after_last;
    }
    return out;
  }

 private:
  struct Progress {
    double seconds = 0, steps = 0, epochs = 0;
  };
  static double times(const PauseInterval& every, const Progress& at) {
    return every.times_in(at.seconds, at.steps, at.epochs);
  }
  static double intervals(const PauseInterval& every, const Progress& at) {
    return every.intervals_in(at.seconds, at.steps, at.epochs);
  }

  const ScenarioSetup& setup_;
  Progress done_;
  double unsaved_ = 0;  ///< s of training since the last checkpoint
};

}  // namespace

double checkpoint_bytes(const ScenarioSetup& setup) {
  constexpr double kBytesPerValue = 4;
  return kBytesPerValue * static_cast<double>(setup.model.trained_count()) *
         (1 + optimizer_state_values(setup.optimizer));
}

void add_running_costs(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, ScenarioResult& out) {
  const RunningCosts& costs = setup.costs;
  std::vector<PhaseMachines> machines_of_phase;
  std::vector<double> working_in_phase;  // s, pauses included
  double useful = 0, all = 0, total = 0, money = 0, joules = 0;
  PauseClock pauses(setup);
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const PhaseRun& run = runs[p];
    machines_of_phase.push_back(phase_machines(setup, setup.phases[p], run));
    const double training = run.joining.seconds + run.result.total;
    working_in_phase.push_back(training + pauses.next(setup.phases[p], run, machines_of_phase.back().workers));
    useful += training;
    all += working_in_phase.back();
  }
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const PhaseRun& run = runs[p];
    const PhaseMachines& machines = machines_of_phase[p];
    const double working = working_in_phase[p];
    const double seconds = costs.failures ? lengthened(setup, working, all, machines.all.nodes) : working;
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
