#include "experiments/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "experiments/calibrate/step_measurements.hpp"
#include "experiments/change_trials.hpp"
#include "experiments/chrome_trace.hpp"
#include "experiments/collective_report.hpp"
#include "experiments/costs/scenario_costs.hpp"
#include "experiments/details.hpp"
#include "experiments/explain.hpp"
#include "experiments/fork_pool.hpp"
#include "experiments/interval.hpp"
#include "experiments/joining.hpp"
#include "experiments/learning/learning_run.hpp"
#include "experiments/memory_advice.hpp"
#include "experiments/mesh_advice.hpp"
#include "experiments/phase_run.hpp"
#include "experiments/rounding_noise.hpp"
#include "experiments/scenario_warnings.hpp"
#include "experiments/seeds.hpp"
#include "experiments/time_scale.hpp"
#include "experiments/utilisation.hpp"
#include "platforms/boards.hpp"
#include "sim/execution_archive.hpp"
#include "sim/executor.hpp"
#include "sim/long_step.hpp"
#include "sim/network_plan.hpp"

namespace epocast {
namespace {

/// Mean over phases, each weighted by its iterations.
template <class Value>
double per_iteration(const std::vector<PhaseRun>& runs, Value value) {
  double sum = 0, iterations = 0;
  for (const PhaseRun& run : runs) {
    sum += value(run) * static_cast<double>(run.iterations);
    iterations += static_cast<double>(run.iterations);
  }
  return sum / iterations;
}

/// s that one of the phase's devices, alone, needs for its share of the batch; none if devices differ, or if the share
/// is no whole number of samples.
std::optional<double> lone_step(const StrategyContext& context) {
  if (context.global_batch % static_cast<std::int64_t>(context.workers.size()) != 0) return std::nullopt;
  if (DeviceKinds(context.cluster, context.workers).count() > 1) return std::nullopt;
  return context.trace(context.worker_batch()).compute_time().longest().value;
}

/// Samples/s per device over those of one device that computes its share of the batch alone: over all phases, the time
/// that lone devices would take for the same samples over the time that the devices take.
std::optional<double> efficiency(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs) {
  double alone = 0, together = 0;
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const PhaseRun& run = runs[p];
    if (!run.lone_step) return std::nullopt;
    const double devices = static_cast<double>(setup.phases[p].workers.size());
    const double applied = run.batch / static_cast<double>(setup.phases[p].global_batch);
    alone += devices * static_cast<double>(run.iterations) * applied * *run.lone_step;
    together += devices * static_cast<double>(run.iterations) * run.per_step(run.result.iteration);
  }
  return alone / together;
}

void summarize(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, ScenarioResult& out) {
  const auto& phases = setup.phases;
  // With a schedule, batch and workers are those of the last phase; times are averages over all.
  out.workers = static_cast<std::int64_t>(phases.back().workers.size());
  out.global_batch = std::llround(runs.back().batch);

  double epochs = 0, samples = 0, iterations = 0, single_total = 0;
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const auto n = static_cast<double>(runs[p].iterations);
    out.total_s += runs[p].joining.seconds + runs[p].result.total;
    epochs += static_cast<double>(phases[p].epochs);
    iterations += n;
    samples += n * runs[p].batch;
    single_total += n * runs[p].single_step;
    out.iterations_simulated += std::min(runs[p].result.iterations_simulated * runs[p].step.steps, runs[p].iterations);
    out.comm_bytes_per_epoch += runs[p].joining.bytes + runs[p].per_step(runs[p].result.metrics.bytes) * n;
    out.max_link_utilization = std::max(out.max_link_utilization, runs[p].result.metrics.max_link_utilization);
  }
  const auto mean = [&](auto value) { return per_iteration(runs, value); };
  out.iteration_s = mean([](const PhaseRun& r) { return r.per_step(r.result.iteration); });
  out.iteration_ci95 = mean([](const PhaseRun& r) { return r.per_step(r.result.iteration_ci95); });
  out.epoch_s = out.total_s / epochs;
  out.samples_per_s = samples / iterations / out.iteration_s;
  if (single_total > 0) {
    out.speedup = single_total / iterations / out.iteration_s;
    const double computing = mean([](const PhaseRun& r) { return r.per_step(r.result.metrics.compute); });
    out.bubble_fraction = without_rounding_noise(1 - computing / out.iteration_s, 1);
  }
  out.efficiency = efficiency(setup, runs);
  out.compute_s = mean([](const PhaseRun& r) { return r.per_step(r.result.metrics.compute); });
  out.comm_s = mean([](const PhaseRun& r) { return r.per_step(r.result.metrics.communication); });
  const double exposed = mean([](const PhaseRun& r) { return r.per_step(r.result.metrics.exposed_communication); });
  out.exposed_comm_s = without_rounding_noise(exposed, out.iteration_s);
  if (out.comm_s > 0) out.overlap_ratio = 1 - out.exposed_comm_s / out.comm_s;
  out.comm_bytes_per_iteration = out.comm_bytes_per_epoch / iterations;
  out.comm_bytes_per_epoch /= epochs;

  for (const PhaseRun& r : runs) add_algorithm_names(algorithm_uses(r.step.graph, r.result), out.algorithm);
  const auto all = [&](auto test) { return std::all_of(runs.begin(), runs.end(), test); };
  out.exact = all([](const PhaseRun& r) { return r.result.exact; });
  if (all([](const PhaseRun& r) { return r.result.bound.has_value(); }))
    out.bound_s = mean([](const PhaseRun& r) { return r.per_step(lower_bound(r.result)); });
  for (const PhaseRun& r : runs) {
    if (!r.result.metrics.mean_staleness) continue;
    out.max_staleness = std::max(out.max_staleness.value_or(0), *r.result.metrics.max_staleness);
    out.mean_staleness = mean([](const PhaseRun& run) { return run.result.metrics.mean_staleness.value_or(0); });
  }
  if (!setup.model.layers.empty() && setup.strategy->needs_model()) {
    add_utilisation(setup, runs, out);
    double peak = 0;
    for (const PhaseRun& run : runs)
      for (const DeviceMemory& memory : run.step.memory) peak = std::max(peak, memory.use.total().value);
    out.peak_memory_bytes = peak;
    out.fits_memory = all([&](const PhaseRun& r) { return memory_excess(r.step, setup.cluster).value <= 0; });
  }
}

int fewest_cores(const ScenarioSetup& setup, const PhaseSettings& phase) {
  int fewest = std::numeric_limits<int>::max();
  for (const DeviceId worker : phase.workers)
    fewest = std::min(fewest, setup.cluster.devices[static_cast<std::size_t>(worker)].cores);
  return fewest;
}

/// What the stack makes communication cost: what it costs the slowest device, and the one with the fewest cores.
CommunicationCosts communication_costs(const ScenarioSetup& setup, const PhaseSettings& phase) {
  CommunicationCosts costs{.overhead = setup.stack.collective_overhead().value,
                           .interference = setup.stack.interference(),
                           .processor_time = setup.stack.processor_time() / fewest_cores(setup, phase),
                           .handshake = setup.stack.handshake(),
                           .window = setup.stack.window()};
  if (setup.stack.copies() > 0)
    for (const DeviceId worker : phase.workers)
      costs.copy_time =
          std::max(costs.copy_time, setup.stack.copy_time(setup.cluster.devices[static_cast<std::size_t>(worker)]));
  return costs;
}

/// Each variant takes as long to simulate as the scenario, and as much memory: of larger steps, minutes and gigabytes.
constexpr double kMostTasksToAdvise = 100'000;
constexpr std::size_t kMostExecutionsToAdvise = 1'000'000;  // of which each is a rank's, where ranks differ

/// Whether a phase's times are all that is asked for, and each of its iterations is like the others.
bool may_be_shorter(const RunOptions& options, const ChromeTrace* trace, const Irregularity& irregularity) {
  return !options.exact && !options.details && !options.explain && trace == nullptr && !irregularity.noise.any() &&
         irregularity.slow_devices.empty() && irregularity.slow_links.empty();
}

/// Executes in a child process; nothing comes of it where the system allows none.
std::function<std::optional<ExecutionResult>()> execute_in_child(const std::function<ExecutionResult()>& work) {
  const auto job = [work](int) {
    ExecutionResult result = work();
    Archive archive;
    archive(result);
    return archive.bytes();
  };
  return [child = std::make_shared<ForkPool>(job, 1)]() -> std::optional<ExecutionResult> {
    const std::vector<JobOutcome> outcomes = child->wait();
    if (outcomes.empty() || !outcomes.front().finished) return std::nullopt;
    ExecutionResult result;
    Archive(outcomes.front().output)(result);
    return result;
  };
}

/// Executes a phase's step, by shorter ones as long as they may tell. `processors`: that it may keep busy.
ExecutionResult execute_step(const ScenarioSetup& setup, const PhaseSettings& phase, SimEngine& engine,
                             const ExecutionOptions& how, int processors, PhaseRun& run) {
  const auto of_size = [&](int micro_batches) {
    return setup.compile(phase, &run.asked, {.micro_batches = micro_batches});
  };
  const ShorterSteps shorter(of_size, setup.cluster, engine, how,
                             processors > 1 ? execute_in_child : ShorterSteps::Elsewhere());
  int looked_at = 0;  // micro-batches
  for (int patience = 1; ShorterSteps::may_tell(run.step); patience *= 4) {
    if (std::exchange(looked_at, run.step.shortened->micro_batches) < run.step.shortened->micro_batches)
      if (std::optional<ExecutionResult> told = shorter.tell(run.step)) return std::move(*told);
    run.step = setup.compile(phase, &run.asked, {.shorten_from = ScenarioSetup::kManyPasses, .patience = patience});
  }
  if (run.step.shortened) run.step = setup.compile(phase, &run.asked);
  return execute(run.step.graph, setup.cluster, engine, how);
}

/// Simulates all phases, one after the other. `trace`: to add their timelines to; null for none. `first`: the first
/// phase, if it is compiled already.
std::vector<PhaseRun> run_phases(const ScenarioSetup& setup, SimEngine& engine, const RunOptions& options,
                                 std::uint64_t seed, ChromeTrace* trace, const std::function<void(double)>& progress,
                                 std::optional<CompiledPhase> first = {}) {
  const bool in_short = may_be_shorter(options, trace, setup.irregularity);
  std::vector<PhaseRun> runs;
  double shown = 0, elapsed = 0;
  for (const PhaseSettings& phase : setup.phases) {
    PhaseRun run;
    if (first && (in_short || !first->step.shortened)) {
      run.step = std::move(first->step);
      run.asked = std::move(first->asked);
    } else {
      run.step = setup.compile(
          phase, &run.asked,
          in_short ? StepLength{.shorten_from = ScenarioSetup::kManyPasses, .patience = 0} : StepLength{});
    }
    first.reset();
    if (options.must_fit && memory_excess(run.step, setup.cluster).value > 0) throw DoesNotFit();
    run.batch = phase.applied_samples(run.step.graph);
    run.iterations = phase.iterations_of(run.batch);
    if (setup.strategy->needs_model() && !options.only_time) {
      const StrategyContext context = setup.lone_context(phase);
      const double whole = std::ceil(run.batch);
      run.single_step = context.trace(static_cast<std::int64_t>(whole)).compute_time().shortest().value;
      run.single_step *= run.batch / whole;
      run.lone_step = lone_step(context);
    }
    ExecutionOptions how = execution_options(setup, phase, seed, elapsed);
    if (!runs.empty()) run.joining = joining_of(setup, engine, runs.back().step, run.step, phase, how);
    shown += run.joining.seconds;
    how.elapsed = elapsed += run.joining.seconds;
    how.iterations = run.rounds();
    how.exact = options.exact;
    how.fold = options.fold && phase.shares.empty();  // folding looks at devices, not at what they are given to do
    if (options.must_fit) how.most_executions = kMostExecutionsToAdvise;
    how.find_bound = !options.only_time;
    how.only_pace = options.only_time && setup.phases.size() == 1;  // else the next begins when this one has ended
    how.record_waiting = how.record_traffic = options.details;
    how.record_timeline = options.details || trace != nullptr;
    how.max_intervals = options.trace_intervals;
    if (progress)
      how.progress = [&, ended = static_cast<double>(runs.size())](double share) {
        progress((ended + share) / static_cast<double>(setup.phases.size()));
      };
    try {
      run.result = execute_step(setup, phase, engine, how, options.advisers, run);
    } catch (const RingCountError& problem) {
      if (!setup.rings.is_count()) throw;
      throw setup.rings.error(problem.what());
    }
    if (trace != nullptr) trace->add(run.step.graph, setup.cluster, run.result, shown);
    shown += run.result.totals.makespan;
    run.result.total *= run.share_of_rounds();
    elapsed += run.result.total;
    if (options.details) run.overlap = measure_overlap(run.step.graph, run.result);
    run.result.timeline = {};
    runs.push_back(std::move(run));
  }
  return runs;
}

/// A forward pass of the batch in each phase, as the same strategy does it [s]. No backward pass follows, for whose
/// sake activations would be forgotten or moved to the host.
void add_evaluation(ScenarioSetup& setup, SimEngine& engine, const RunOptions& options, std::vector<PhaseRun>& runs) {
  if (!setup.costs.pauses || !setup.costs.pauses->evaluation) return;
  const Model trained = std::exchange(setup.model, untrained(setup.model));
  const MemorySettings memory = setup.memory;
  setup.memory.recompute = {};
  setup.memory.of_layers = LayerRecompute::none;
  setup.memory.offload = {};
  RunOptions quiet = options;
  quiet.details = quiet.exact = false;
  std::vector<PhaseRun> passes;
  try {
    passes = run_phases(setup, engine, quiet, setup.irregularity.seeds.front(), nullptr, {});
  } catch (const std::runtime_error& problem) {
    throw setup.costs.pauses->evaluation->place.error("strategy " + setup.strategy_name +
                                                      " has no forward passes by themselves: " + problem.what());
  }
  setup.model = trained;
  setup.memory = memory;
  for (std::size_t p = 0; p < runs.size(); ++p)
    runs[p].evaluation_step = passes[p].per_step(passes[p].result.iteration);
}

/// How long an iteration takes [s], and nothing else.
double iteration_of(ScenarioSetup& setup, SimEngine& engine, RunOptions options) {
  options.only_time = true;
  const std::vector<PhaseRun> runs = run_phases(setup, engine, options, setup.irregularity.seeds.front(), nullptr, {},
                                                std::exchange(setup.first, std::nullopt));
  return per_iteration(runs, [](const PhaseRun& r) { return r.per_step(r.result.iteration); });
}

/// Iterations with other software [s]. Children simulate them, `options.advisers` at a time.
std::vector<double> iterations_with(const std::vector<SoftwareStack>& others, ScenarioSetup& setup, SimEngine& engine,
                                    const RunOptions& options) {
  std::vector<std::optional<double>> iterations(others.size());
  const auto simulate = [&](std::size_t i) {
    const SoftwareStack own = std::exchange(setup.stack, others[i]);
    const double iteration = iteration_of(setup, engine, {.exact = options.exact, .fold = options.fold});
    setup.stack = own;
    return iteration;
  };
  try {
    if (options.advisers > 1)
      run_forked(
          static_cast<int>(others.size()), options.advisers,
          [&](int i) { return fmt::format("{:.17g}", simulate(static_cast<std::size_t>(i))); },
          [&](int i, const JobOutcome& outcome) {
            if (outcome.finished) iterations[static_cast<std::size_t>(i)] = std::stod(outcome.output);
          });
  } catch (const ConfigError&) {  // the system allows no further process: here, then
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < others.size(); ++i) out.push_back(iterations[i] ? *iterations[i] : simulate(i));
  return out;
}

/// What each mechanism of the software stack costs: how much less an iteration of `iteration` s takes without it,
/// largest first.
std::string stack_costs(ScenarioSetup& setup, SimEngine& engine, const RunOptions& options, double iteration) {
  const SoftwareStack stack = setup.stack;
  const auto without_each = stack.without_each();
  if (without_each.empty()) return "";
  std::vector<SoftwareStack> others{SoftwareStack()};
  for (const auto& [mechanism, without] : without_each) others.push_back(without);
  const std::vector<double> iterations = iterations_with(others, setup, engine, options);
  const auto gain = [&](double other) { return without_rounding_noise(iteration - other, iteration); };
  std::vector<std::pair<double, std::string>> costs;
  for (std::size_t m = 0; m < without_each.size(); ++m)
    costs.emplace_back(gain(iterations[m + 1]), without_each[m].first);
  std::ranges::stable_sort(costs, std::ranges::greater{}, &std::pair<double, std::string>::first);
  const TimeScale scale(iteration);
  std::string out =
      fmt::format("Software (stack {}) costs {} of an iteration of {}; without one of these it would be shorter by\n",
                  stack.name(), scale.text(gain(iterations.front())), scale.text(iteration));
  for (const auto& [cost, mechanism] : costs)
    out += fmt::format("  {:<20} {:>10}  {:5.1f} %\n", mechanism, scale.text(cost), 100 * cost / iteration);
  return out;
}

}  // namespace

double PhaseSettings::applied_samples(const CyclicTaskGraph& graph) const {
  const auto all = static_cast<std::int64_t>(workers.size());
  std::int64_t used = all;
  for (const Task& task : graph.tasks())
    if (task.quorum > 0) used = std::min<std::int64_t>(used, task.quorum);
  return static_cast<double>(global_batch * used) / static_cast<double>(all);
}

std::int64_t PhaseSettings::iterations_of(double batch) const {
  constexpr double kRounding = 1e-15;
  const double batches = static_cast<double>(samples) / batch;
  const double counted = drop_last ? std::floor(batches * (1 + kRounding)) : std::ceil(batches * (1 - kRounding));
  return static_cast<std::int64_t>(counted) * epochs;
}

ExecutionOptions execution_options(const ScenarioSetup& setup, const PhaseSettings& phase, std::uint64_t seed,
                                   double elapsed) {
  const Irregularity& irregularity = setup.irregularity;
  ExecutionOptions how{.shards = setup.shards,
                       .noise = irregularity.noise,
                       .slowdown = irregularity.slowdown,
                       .slow_devices = irregularity.slow_devices,
                       .slow_links = irregularity.slow_links,
                       .costs = communication_costs(setup, phase),
                       .elapsed = elapsed};
  how.noise.seed = seed;
  if (const std::vector<double> boards = board_slowdown(setup.cluster, phase.workers); !boards.empty()) {
    how.slowdown.resize(boards.size(), 1);
    for (std::size_t d = 0; d < boards.size(); ++d) how.slowdown[d] *= boards[d];
  }
  return how;
}

namespace {

/// How long an iteration takes with other settings; nothing where they do not fit into memory or the strategy cannot
/// do it.
std::optional<double> iteration_with(const StudyChange& change, const Scenario& scenario, const Registries& registries,
                                     SimEngine& engine) {
  Scenario other = scenario;
  other.settings.insert(other.settings.end(), change.settings.begin(), change.settings.end());
  try {
    ScenarioSetup setup = read_scenario(other, registries);
    return iteration_of(setup, engine, {.must_fit = true});
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

/// A process has one engine and ends with it: nobody needs 100,000 routes taken apart.
SimEngine& make_lasting_engine(const ScenarioSetup& setup) {
  static SimEngine* only = nullptr;
  return *(only = new SimEngine(setup.cluster, setup.network));
}

/// Whether it is known before anything has run that a small step needs more memory than there is.
bool lacks_memory(const ScenarioSetup& setup) {
  return setup.first && !setup.model.layers.empty() && setup.strategy->needs_model() &&
         tasks_of(setup.first->step) <= kMostTasksToAdvise && memory_excess(setup.first->step, setup.cluster).value > 0;
}

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario, const Registries& registries, const RunOptions& options) {
  ScenarioSetup setup = read_scenario(scenario, registries);
  if (options.ready_engine.engine != nullptr && !options.ready_engine.fits(setup)) throw WrongEngine();
  SimEngine& engine =
      options.ready_engine.engine != nullptr ? *options.ready_engine.engine : make_lasting_engine(setup);
  if (setup.learning) {
    setup.first.reset();
    adapt_schedule(setup, engine);
  }
  const auto simulate = [&](const StudyChange& change) { return iteration_with(change, scenario, registries, engine); };
  std::optional<ChangeTrials> trials;
  if (options.advise && options.advisers > 1 && lacks_memory(setup)) {
    trials.emplace(memory_changes(scenario.config()), simulate);
    trials->begin(options.advisers - 1);
  }

  std::vector<PhaseRun> runs;  // of the first seed
  std::vector<ScenarioResult> by_seed;
  ChromeTrace trace;
  for (const std::uint64_t seed : setup.irregularity.seeds) {
    const bool first = by_seed.empty();
    const auto progress = [&, ended = static_cast<double>(by_seed.size())](double share) {
      options.progress((ended + share) / static_cast<double>(setup.irregularity.seeds.size()));
    };
    std::vector<PhaseRun> made = run_phases(
        setup, engine, options, seed, first && !options.trace_file.empty() ? &trace : nullptr,
        options.progress ? std::function<void(double)>(progress) : nullptr, std::exchange(setup.first, std::nullopt));
    add_evaluation(setup, engine, options, made);
    ScenarioResult& one = by_seed.emplace_back();
    one.study = scenario.study;
    one.scenario = scenario.name;
    one.axes = scenario.axes;
    one.stack = setup.stack.name();
    summarize(setup, made, one);
    add_running_costs(setup, made, one);
    if (first) runs = std::move(made);
  }
  ScenarioResult out = mean_over_seeds(by_seed);
  // The phase that takes longest is the one worth explaining.
  const auto longest = std::max_element(
      runs.begin(), runs.end(), [](const PhaseRun& a, const PhaseRun& b) { return a.result.total < b.result.total; });
  out.limited_by = limited_by(longest->step.graph, longest->result);
  const bool is_small = tasks_of(longest->step) <= kMostTasksToAdvise;
  RunOptions variants = options;
  if (!is_small) variants.advisers = 1;
  // What other software takes is simulated with the first seed only, and compared with that seed's own iteration.
  auto first_seed = [&, known = std::optional<double>()]() mutable {
    if (setup.irregularity.seeds.size() < 2) return out.iteration_s;
    if (!known) known = iteration_of(setup, engine, {.exact = options.exact, .fold = options.fold});
    return *known;
  };
  if (options.explain) {
    if (!longest->step.composition.empty())
      out.explanation = fmt::format("A step is put together from {}.\n", longest->step.composition);
    if (const std::string basis = setup.cost_model ? setup.cost_model->basis() : ""; !basis.empty())
      out.explanation += fmt::format("Computation is timed by {}.\n", basis);
    if (longest->step.steps > 1)
      out.explanation += fmt::format("An iteration below is {} steps of every worker.\n", longest->step.steps);
    if (setup.steps) out.explanation += setup.steps->explanation(range_of(setup));
    out.explanation += explain(longest->step.graph, longest->result);
    if (setup.stack.name() != kIdealStack) out.explanation += stack_costs(setup, engine, variants, first_seed());
  }
  if (options.interval) {
    const auto within = setup.steps ? setup.steps->within_90(range_of(setup)) : std::nullopt;
    const double also = setup.steps              ? std::expm1(setup.steps->calibration().within_90)
                        : setup.computes_updates ? setup.stack.unexplained_kernels()
                                                 : 0;
    const auto forecasts = [&](const auto& others) { return iterations_with(others, setup, engine, variants); };
    const double seconds = within ? out.iteration_s : first_seed();
    const ForecastInterval interval = within ? interval_among_steps(seconds, *within)
                                             : interval_of(seconds, SoftwareStack(setup.stack), forecasts, also);
    out.iteration_low_s = interval.low * (out.iteration_s / seconds);
    out.iteration_high_s = interval.high * (out.iteration_s / seconds);
  }
  if (options.details) out.details = details(setup, runs, by_seed);
  if (setup.learning) learn(setup, engine, runs, out);
  const bool advise = options.advise && is_small;
  std::optional<std::vector<Remedy>> remedies;
  if (advise && out.fits_memory && !*out.fits_memory) {
    if (!trials) trials.emplace(memory_changes(scenario.config()), simulate);
    remedies = trials->finish(options.advisers);
  }
  add_warnings(setup, runs, remedies, out);
  const auto change =
      advise ? mesh_change(scenario.config(), setup.cluster, setup.phases.front().workers) : std::nullopt;
  if (change)
    for (const Remedy& other : ChangeTrials({*change}, simulate).finish(1))
      if (std::string advice = mesh_advice(out.iteration_s, other); !advice.empty())
        out.warnings.push_back(std::move(advice));
  if (!options.trace_file.empty()) trace.write(options.trace_file);
  return out;
}

}  // namespace epocast
