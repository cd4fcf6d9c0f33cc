#include "experiments/learning/learning_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/batch_schedule.hpp"
#include "experiments/learning/curves.hpp"
#include "experiments/learning/event_log.hpp"
#include "experiments/learning/settings.hpp"
#include "sim/executor.hpp"

namespace epocast {
namespace {

using learning::CurvePoint;
using learning::LearningOutcome;
using learning::PhaseEnd;

/// The logs of all phases for one seed of the noise, made when they are first asked for.
class PhaseLogs {
 public:
  PhaseLogs(const ScenarioSetup& setup, SimEngine& engine, const std::vector<PhaseRun>& runs)
      : setup_(setup), engine_(engine), runs_(runs) {}

  const ParameterLog& get(std::size_t phase, std::size_t seed, std::int64_t samples) {
    const auto [at, is_new] = logs_.try_emplace({phase, seed});
    if (!is_new) return at->second;
    double elapsed = runs_[phase].joining.seconds;
    for (std::size_t p = 0; p < phase; ++p) {
      // Of the problem's samples, which may be others than the data set's.
      const double share = static_cast<double>(rounds(p, samples) * runs_[p].step.steps) /
                           static_cast<double>(std::max<std::int64_t>(runs_[p].iterations, 1));
      elapsed += runs_[p].joining.seconds + share * runs_[p].result.total;
    }
    at->second = record_parameter_log(setup_, setup_.phases[phase], engine_, setup_.irregularity.seeds[seed], elapsed,
                                      rounds(phase, samples), &runs_[phase].result);
    return at->second;
  }

 private:
  /// Iterations of the graph in a phase over a problem of so many samples.
  std::int64_t rounds(std::size_t phase, std::int64_t samples) const {
    const PhaseSettings& settings = setup_.phases[phase];
    const std::int64_t epochs = setup_.learning->epochs.value_or(settings.epochs);
    const std::int64_t per_iteration = settings.global_batch * runs_[phase].step.steps;
    return (epochs * samples + per_iteration - 1) / per_iteration;
  }

  const ScenarioSetup& setup_;
  SimEngine& engine_;
  const std::vector<PhaseRun>& runs_;
  std::map<std::pair<std::size_t, std::size_t>, ParameterLog> logs_;
};

LearningOutcome train(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, PhaseLogs& logs,
                      std::uint64_t seed) {
  const LearningSettings& settings = *setup.learning;
  const auto problem = learning::make_problem(settings.problem, settings.options, seed);
  learning::Replay replay(*problem, settings.replay());
  const std::size_t noise_seed = (seed - 1) % setup.irregularity.seeds.size();
  for (std::size_t p = 0; p < setup.phases.size(); ++p) {
    const PhaseSettings& phase = setup.phases[p];
    const ParameterLog& log = logs.get(p, noise_seed, problem->samples());
    const std::int64_t worker_batch =
        std::max<std::int64_t>(1, phase.global_batch * runs[p].step.steps / log.workers / log.gradients_per_iteration);
    const learning::ReplayPhase what{.log = &log,
                                     .worker_batch = worker_batch,
                                     .global_batch = phase.global_batch,
                                     .bytes_per_iteration = runs[p].result.metrics.bytes,
                                     .shares = phase.shares,
                                     .delay = runs[p].joining.seconds,
                                     .delay_bytes = runs[p].joining.bytes};
    if (replay.run(what) != PhaseEnd::done) break;
  }
  return replay.outcome();
}

/// The mean, if all have it and none diverged.
template <class Of>
std::optional<double> mean_of(const std::vector<LearningOutcome>& outcomes, Of of) {
  double sum = 0;
  for (const LearningOutcome& outcome : outcomes) {
    const std::optional<double> value = of(outcome);
    if (outcome.diverged || !value || !std::isfinite(*value)) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(outcomes.size());
}

/// "loss 0.12 after 3.5 epochs".
std::string describe(const CurvePoint& point, const std::string& accuracy) {
  const std::string value =
      point.accuracy ? fmt::format("{} {:.4g}", accuracy, *point.accuracy) : fmt::format("loss {:.4g}", point.loss);
  return fmt::format("{} after {:.4g} epochs", value, point.epoch);
}

void warn(const ScenarioSetup& setup, const std::vector<LearningOutcome>& outcomes, const std::string& accuracy,
          ScenarioResult& out) {
  const auto count = [&](auto test) { return std::ranges::count_if(outcomes, test); };
  const auto diverged = count([](const LearningOutcome& o) { return o.diverged.has_value(); });
  if (diverged > 0) {
    const auto first = std::ranges::find_if(outcomes, [](const LearningOutcome& o) { return o.diverged.has_value(); });
    out.warnings.push_back(
        fmt::format("training by {} diverged with {} of {} seeds: loss {:.4g} at {:.4g} s, phase {}, epoch {:.3g}; use "
                    "a lower rate",
                    setup.strategy_name, diverged, outcomes.size(), first->diverged->loss, first->diverged->time,
                    first->diverged->phase + 1, first->diverged->epoch));
  }
  const learning::StopRule& stop = setup.learning->stop;
  const auto missed = count([](const LearningOutcome& o) { return !o.reached; });
  if ((stop.loss || stop.accuracy) && missed > 0) {
    const auto first = std::ranges::find_if(outcomes, [](const LearningOutcome& o) { return !o.reached; });
    out.warnings.push_back(
        fmt::format("the target was not reached with {} of {} seeds; the best of the first of them: {}", missed,
                    outcomes.size(), describe(first->best, accuracy)));
  }
}

}  // namespace

void learn(const ScenarioSetup& setup, SimEngine& engine, const std::vector<PhaseRun>& runs, ScenarioResult& out) {
  if (const std::optional<Convergence>& given = setup.learning->given) {
    out.epochs_to_target = given->epochs_with(out.global_batch, out.mean_staleness.value_or(0));
    out.time_to_target_s = out.epoch_s * *out.epochs_to_target;
    return;
  }
  PhaseLogs logs(setup, engine, runs);
  std::vector<LearningOutcome> outcomes;
  for (int seed = 1; seed <= setup.learning->seeds; ++seed)
    outcomes.push_back(train(setup, runs, logs, static_cast<std::uint64_t>(seed)));
  out.loss = mean_of(outcomes, [](const LearningOutcome& o) { return std::optional(o.curve.back().loss); });
  out.accuracy = mean_of(outcomes, [](const LearningOutcome& o) { return o.curve.back().accuracy; });
  const auto reached = [&](auto member) {
    return mean_of(outcomes, [&](const LearningOutcome& o) {
      return o.reached ? std::optional<double>((*o.reached).*member) : std::nullopt;
    });
  };
  out.time_to_target_s = reached(&CurvePoint::time);
  if (out.time_to_target_s && out.goodput) *out.time_to_target_s /= *out.goodput;  // which no curve knows
  out.epochs_to_target = reached(&CurvePoint::epoch);
  out.curves = pack_curves(outcomes);
  const std::string accuracy =
      learning::make_problem(setup.learning->problem, setup.learning->options, 1)->accuracy_name();
  warn(setup, outcomes, accuracy, out);
}

void adapt_schedule(ScenarioSetup& setup, SimEngine& engine) {
  constexpr double kSaturated = 0.1;
  if (setup.learning->adaptive == nullptr) return;
  const BatchDoubling& rule = *setup.learning->adaptive;
  const PhaseSettings& first = setup.phases.front();
  const LearningSettings& settings = *setup.learning;
  const auto problem = learning::make_problem(settings.problem, settings.options, 1);
  const TrainingStep step = setup.compile(first);
  const std::int64_t per_iteration = first.global_batch * step.steps;
  const std::int64_t iterations = (rule.epochs * problem->samples() + per_iteration - 1) / per_iteration;
  ExecutionOptions how = execution_options(setup, first, setup.irregularity.seeds.front(), 0);
  how.iterations = iterations;
  const ExecutionResult timed = execute(step.graph, setup.cluster, engine, how);
  const ParameterLog log =
      record_parameter_log(setup, first, engine, setup.irregularity.seeds.front(), 0, iterations, &timed);
  learning::ReplaySettings training = settings.replay();
  training.evaluations = 1;
  learning::Replay replay(*problem, training);
  std::int64_t interval = 0;
  double before = 0;
  const std::int64_t worker_batch =
      std::max<std::int64_t>(1, per_iteration / log.workers / log.gradients_per_iteration);
  const learning::ReplayPhase phase{
      .log = &log, .worker_batch = worker_batch, .global_batch = first.global_batch, .shares = first.shares};
  replay.run(phase, [&](const CurvePoint& point) {
    ++interval;
    const bool saturated = interval > 1 && std::abs(point.theta - before) < kSaturated * std::abs(before);
    before = point.theta;
    return !saturated;
  });
  setup.phases = rule.phases(std::max<std::int64_t>(interval, 1), first.samples, first.drop_last);
}

}  // namespace epocast
