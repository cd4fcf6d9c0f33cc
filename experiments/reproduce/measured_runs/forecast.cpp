#include "experiments/reproduce/measured_runs/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "experiments/reproduce/simulate.hpp"

namespace epocast {
namespace {

constexpr double kAnchorPrecision = 1e-6;  // relative, of the baseline's time
constexpr int kMostAnchorRounds = 12;

double value_of(const ScenarioResult& result, const std::string& quantity) {
  return quantity == "iteration_s" ? result.iteration_s : result.samples_per_s;
}

/// Samples per second are most where an iteration is shortest.
void add_interval(TargetRow& row, const ScenarioResult& result, const std::string& quantity) {
  if (!result.iteration_low_s) return;
  const bool is_time = quantity == "iteration_s";
  const auto value = [&](double iteration) {
    return is_time ? iteration : row.simulated * result.iteration_s / iteration;
  };
  row.low = value(is_time ? *result.iteration_low_s : *result.iteration_high_s);
  row.high = value(is_time ? *result.iteration_high_s : *result.iteration_low_s);
}

/// The step time at which a simulated baseline takes its measured time, by the secant method: the time of a run is
/// about linear in that of its computations.
class Anchor {
 public:
  Anchor(const MeasuredRun& run, std::int64_t batch, std::int64_t global_batch, bool is_time)
      : run_(run),
        batch_(batch),
        wanted_(is_time ? run.measured : static_cast<double>(global_batch) / run.measured),
        step_(wanted_) {}

  bool found() const { return found_; }
  const Location& place() const { return run_.where; }

  /// The run with computation anchored to the step time at hand.
  Scenario apply(const Scenario& scenario) const {
    Scenario out = scenario;
    out.settings.emplace_back(
        "compute.step_time",
        ConfigNode::load_text(fmt::format("{{batch: {}, time: {:.12g} s}}", batch_, step_), run_.where.file));
    return out;
  }

  /// Takes what the baseline took with it, and goes on to a better one.
  void improve(double took) {
    found_ = std::abs(took - wanted_) <= kAnchorPrecision * wanted_;
    if (found_) return;
    const double slope = last_took_ > 0 && step_ != last_step_ ? (took - last_took_) / (step_ - last_step_) : 1;
    last_step_ = std::exchange(step_, step_ + (wanted_ - took) / std::clamp(slope, 0.05, 20.0));
    last_took_ = took;
    if (step_ <= 0) step_ = last_step_ / 2;
  }

  ConfigError failure() const {
    return {run_.where, "role",
            fmt::format("no step time makes the baseline of series '{}' take the measured {:.4g} s a step; at {:.4g} s "
                        "it takes {:.4g} s: its communication or update alone may take longer",
                        run_.series, wanted_, last_step_, last_took_)};
  }

 private:
  const MeasuredRun& run_;
  std::int64_t batch_;
  double wanted_, step_;
  double last_step_ = 0, last_took_ = 0;
  bool found_ = false;
};

/// What is wrong with a baseline is wrong in its row of the table.
std::vector<ScenarioResult> simulate_baselines(const std::vector<Scenario>& scenarios,
                                               const std::vector<Anchor*>& anchors, const TargetContext& context) {
  try {
    return simulate(scenarios, context);
  } catch (const ConfigError& problem) {
    for (std::size_t i = 0; i < scenarios.size(); ++i)
      if (problem.problem().starts_with(scenarios[i].name + ": "))
        throw ConfigError(anchors[i]->place(), "role", problem.problem());
    throw;
  }
}

/// By series.
std::map<std::string, Anchor> anchor_series(const RunsFile& file, const TargetContext& context) {
  std::map<std::string, Anchor> anchors;
  std::map<std::string, const MeasuredRun*> baselines;
  for (const MeasuredRun& run : file.runs) {
    if (run.role != RunRole::baseline) continue;
    const ScenarioSetup setup = read_scenario(run.scenario, context.registries);
    const PhaseSettings& phase = setup.phases.front();
    const auto replicas = setup.strategy->batch_divisor(static_cast<std::int64_t>(phase.workers.size()));
    anchors.emplace(run.series, Anchor(run, std::max<std::int64_t>(1, phase.global_batch / replicas),
                                       phase.global_batch, file.quantity == "iteration_s"));
    baselines.emplace(run.series, &run);
  }
  for (int round = 0; round < kMostAnchorRounds; ++round) {
    std::vector<Scenario> scenarios;
    std::vector<Anchor*> open;
    for (auto& [series, anchor] : anchors)
      if (!anchor.found()) {
        scenarios.push_back(anchor.apply(baselines.at(series)->scenario));
        scenarios.back().name = "baseline of " + series;
        open.push_back(&anchor);
      }
    if (open.empty()) return anchors;
    const std::vector<ScenarioResult> results = simulate_baselines(scenarios, open, context);
    for (std::size_t i = 0; i < open.size(); ++i) open[i]->improve(results[i].iteration_s);
  }
  for (const auto& [series, anchor] : anchors)
    if (!anchor.found()) throw anchor.failure();
  return anchors;
}

}  // namespace

std::vector<TargetRow> forecast(const RunsFile& file, const TargetContext& context) {
  const std::map<std::string, Anchor> anchors = anchor_series(file, context);
  std::vector<Scenario> scenarios;
  std::vector<const MeasuredRun*> runs;
  for (const MeasuredRun& run : file.runs) {
    if (run.role == RunRole::left_out) continue;
    const auto anchor = anchors.find(run.series);
    scenarios.push_back(anchor == anchors.end() ? run.scenario : anchor->second.apply(run.scenario));
    scenarios.back().name = run.series + "; " + run.settings;
    runs.push_back(&run);
  }
  RunOptions options;
  options.interval = file.intervals;
  const std::vector<ScenarioResult> results = simulate(scenarios, context, options);

  std::map<std::string, std::size_t> baselines;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i]->role == RunRole::baseline) baselines[runs[i]->series] = i;
  std::vector<TargetRow> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const MeasuredRun& run = *runs[i];
    TargetRow& row = rows.emplace_back(TargetRow{.row = run.series + (run.settings.empty() ? "" : "; " + run.settings),
                                                 .quantity = file.quantity,
                                                 .unit = file.unit,
                                                 .published = run.measured,
                                                 .simulated = value_of(results[i], file.quantity),
                                                 .note = run.note,
                                                 .groups = run.groups,
                                                 .rivals = run.rivals});
    if (run.role == RunRole::baseline) {
      row.role = Role::input;
      row.tolerance = 10 * kAnchorPrecision * run.measured;
      continue;
    }
    if (run.role == RunRole::fitted) {
      row.role = Role::input;
      row.fitted = true;
      continue;
    }
    row.seen = file.seen;
    add_interval(row, results[i], file.quantity);
    const auto baseline = baselines.find(run.series);
    if (baseline == baselines.end()) continue;
    const ScenarioResult& first = results[baseline->second];
    const double devices = static_cast<double>(results[i].workers) / static_cast<double>(first.workers);
    const double samples = static_cast<double>(results[i].global_batch) / static_cast<double>(first.global_batch);
    const double measured = runs[baseline->second]->measured;
    row.trivial = file.quantity == "iteration_s" ? measured * samples / devices : measured * devices;
  }
  return rows;
}

Target measured_target(RunsFile file) {
  Target target;
  target.paper = file.paper;
  target.table = file.table;
  target.description = file.description;
  target.mape_bound = file.mape_bound;
  target.bounds = file.bounds;
  target.winners = file.winners;
  target.known_misses = file.known_misses;
  target.trivial_rule = "linear scaling";
  const auto shared = std::make_shared<const RunsFile>(std::move(file));
  target.run = [shared](const TargetContext& context) { return forecast(*shared, context); };
  return target;
}

}  // namespace epocast
