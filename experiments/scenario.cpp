#include "experiments/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "experiments/calibrate/step_measurements.hpp"
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
#include "experiments/model_work.hpp"
#include "experiments/phase_run.hpp"
#include "experiments/rounding_noise.hpp"
#include "experiments/seeds.hpp"
#include "experiments/time_scale.hpp"
#include "platforms/boards.hpp"
#include "sim/executor.hpp"
#include "sim/network_plan.hpp"

namespace epocast {
namespace {

/// Of a step's samples those that its updates use: an update with a quorum leaves out the workers that come late.
std::int64_t applied_samples(const CyclicTaskGraph& graph, const PhaseSettings& phase) {
  const auto workers = static_cast<std::int64_t>(phase.workers.size());
  std::int64_t used = workers;
  for (const Task& task : graph.tasks())
    if (task.quorum > 0) used = std::min<std::int64_t>(used, task.quorum);
  return phase.global_batch * used / workers;
}

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
    const double applied = static_cast<double>(run.batch) / static_cast<double>(setup.phases[p].global_batch);
    alone += devices * static_cast<double>(run.iterations) * applied * *run.lone_step;
    together += devices * static_cast<double>(run.iterations) * run.per_step(run.result.iteration);
  }
  return alone / together;
}

/// Tokens, and shares of the peak rate of the last phase's devices.
void add_utilisation(const ScenarioSetup& setup, ScenarioResult& out) {
  if (const std::int64_t tokens = tokens_per_sample(setup.model); tokens > 0)
    out.tokens_per_s = out.samples_per_s * static_cast<double>(tokens);
  double peak = 0;
  for (const DeviceId worker : setup.phases.back().workers)
    peak += setup.cluster.devices[static_cast<std::size_t>(worker)].matrix_rate(setup.precision).value;
  const ProductFlop flop = product_flop(setup.model, setup.memory);
  if (!(peak > 0) || !(flop.model > 0)) return;
  out.mfu = out.samples_per_s * flop.model / peak;
  out.hfu = out.samples_per_s * (flop.model + flop.recomputed) / peak;
}

void summarize(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs, ScenarioResult& out) {
  const auto& phases = setup.phases;
  // With a schedule, batch and workers are those of the last phase; times are averages over all.
  out.workers = static_cast<std::int64_t>(phases.back().workers.size());
  out.global_batch = runs.back().batch;

  double epochs = 0, samples = 0, iterations = 0, single_total = 0;
  for (std::size_t p = 0; p < runs.size(); ++p) {
    const auto n = static_cast<double>(runs[p].iterations);
    out.total_s += runs[p].joining.seconds + runs[p].result.total;
    epochs += static_cast<double>(phases[p].epochs);
    iterations += n;
    samples += n * static_cast<double>(runs[p].batch);
    single_total += n * runs[p].single_step;
    out.iterations_simulated += runs[p].result.iterations_simulated * runs[p].step.steps;
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
    add_utilisation(setup, out);
    double peak = 0;
    for (const PhaseRun& run : runs)
      for (const DeviceMemory& memory : run.step.memory) peak = std::max(peak, memory.use.total().value);
    out.peak_memory_bytes = peak;
    out.fits_memory = all([&](const PhaseRun& r) { return memory_excess(r.step, setup.cluster).value <= 0; });
  }
}

/// Whether workers that do not wait for each other, all equal, meet on a link or at a server that cannot serve all of
/// them at once. Then how they fall into step decides how long they wait, and nothing disturbs that.
bool locks_in_phase(const ScenarioSetup& setup, const PhaseSettings& phase, const PhaseRun& run) {
  const Irregularity& irregular = setup.irregularity;
  const bool vary = irregular.noise.any() || !irregular.slow_devices.empty() || !irregular.slow_links.empty() ||
                    std::ranges::any_of(irregular.slowdown, [](double s) { return s != 1; }) ||
                    DeviceKinds(setup.cluster, phase.workers).count() > 1;
  if (vary || phase.workers.size() < 2 || !run.step.graph.ranks_are_independent()) return false;
  constexpr double kShare = 0.01;  // of an iteration spent waiting, that is worth a word
  const bool server_is_full = std::ranges::any_of(
      run.result.servers, [](const ServerReport& server) { return server.utilization > 1 - kShare; });
  return server_is_full || (run.result.bound && run.result.iteration > (1 + kShare) * run.result.bound->seconds);
}

/// `remedies`: none if none were looked for.
void warn(const ScenarioSetup& setup, const std::vector<PhaseRun>& runs,
          const std::optional<std::vector<Remedy>>& remedies, ScenarioResult& out) {
  const auto add = [&](const std::vector<std::string>& caveats) {
    for (const std::string& caveat : caveats)
      if (std::find(out.warnings.begin(), out.warnings.end(), caveat) == out.warnings.end())
        out.warnings.push_back(caveat);
  };
  if (setup.cost_model)
    for (const PhaseRun& run : runs)
      for (const auto& [batch, device] : run.asked) {
        add(setup.cost_model->caveats(batch));
        add(setup.cost_model->device_caveats(setup.cluster.devices[static_cast<std::size_t>(device)]));
      }
  if (setup.steps) add(setup.steps->caveats(range_of(setup)));
  for (std::size_t p = 0; p < runs.size(); ++p)
    if (locks_in_phase(setup, setup.phases[p], runs[p]))
      add(
          {"equal workers that do not wait for each other contend, and nothing varies: how they fall into step decides "
           "how long they wait; before comparing asynchronous schemes give them a spread, as in `noise: {compute_cv: "
           "0.05, seeds: 5}`"});
  for (const MeasuredCollectives& measured : setup.measured_collectives)
    for (const PhaseRun& run : runs) add(measured.caveats(run.step.graph, setup.cluster));
  if (out.fits_memory && !*out.fits_memory) out.warnings.push_back(memory_advice(setup, runs, remedies));
  if (const std::string advice = host_memory_advice(setup, runs); !advice.empty()) out.warnings.push_back(advice);
  for (std::size_t p = 0; p < runs.size(); ++p)
    for (std::size_t w = 0; w < runs[p].result.workers.size(); ++w)
      if (const WorkerReport& worker = runs[p].result.workers[w]; worker.stopped)
        add({fmt::format("worker {} ({}) stands still for ever since {:.4g} s{} and did {} of {} steps", w,
                         setup.cluster.devices[static_cast<std::size_t>(worker.device)].name, *worker.stopped,
                         runs.size() > 1 ? fmt::format(" of phase {}", p + 1) : "", worker.steps * runs[p].step.steps,
                         runs[p].iterations)});
  for (const PhaseRun& run : runs) add(run.step.notes);
  for (const PhaseRun& run : runs) add(run.result.doubts);
  const bool doubtful =
      std::any_of(runs.begin(), runs.end(), [](const PhaseRun& run) { return !run.result.doubts.empty(); });
  if (!out.exact && (!doubtful || out.iteration_ci95 > 0))
    out.warnings.push_back(fmt::format("total and epoch times are estimates: iteration {:.4g} s +- {:.2g} s (95 %)",
                                       out.iteration_s, out.iteration_ci95));
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

/// Simulates all phases, one after the other. `trace`: to add their timelines to; null for none.
std::vector<PhaseRun> run_phases(const ScenarioSetup& setup, SimEngine& engine, const RunOptions& options,
                                 std::uint64_t seed, ChromeTrace* trace, const std::function<void(double)>& progress) {
  std::vector<PhaseRun> runs;
  double shown = 0, elapsed = 0;
  for (const PhaseSettings& phase : setup.phases) {
    const StrategyContext context = setup.lone_context(phase);
    PhaseRun run;
    run.step = setup.compile(phase, &run.asked);
    run.batch = applied_samples(run.step.graph, phase);
    run.iterations = phase.iterations_of(run.batch);
    if (setup.strategy->needs_model()) {
      run.single_step = context.trace(run.batch).compute_time().shortest().value;
      run.lone_step = lone_step(context);
    }
    ExecutionOptions how = execution_options(setup, phase, seed, elapsed);
    if (!runs.empty()) run.joining = joining_of(setup, engine, runs.back().step, run.step, phase, how);
    shown += run.joining.seconds;
    how.elapsed = elapsed += run.joining.seconds;
    how.iterations = (run.iterations + run.step.steps - 1) / run.step.steps;
    how.exact = options.exact;
    how.fold = options.fold && phase.shares.empty();  // folding looks at devices, not at what they are given to do
    how.record_waiting = how.record_traffic = options.details;
    how.record_timeline = options.details || trace != nullptr;
    how.max_intervals = options.trace_intervals;
    if (progress)
      how.progress = [&, ended = static_cast<double>(runs.size())](double share) {
        progress((ended + share) / static_cast<double>(setup.phases.size()));
      };
    try {
      run.result = execute(run.step.graph, setup.cluster, engine, how);
    } catch (const RingCountError& problem) {
      if (!setup.rings.is_count()) throw;
      throw setup.rings.error(problem.what());
    }
    if (trace != nullptr) trace->add(run.step.graph, setup.cluster, run.result, shown);
    shown += run.result.totals.makespan;
    elapsed += run.result.total;
    if (options.details) run.overlap = measure_overlap(run.step.graph, run.result);
    run.result.timeline = {};
    runs.push_back(std::move(run));
  }
  return runs;
}

/// A forward pass of the batch in each phase, as the same strategy does it [s].
void add_evaluation(ScenarioSetup& setup, SimEngine& engine, const RunOptions& options, std::vector<PhaseRun>& runs) {
  if (!setup.costs.pauses || !setup.costs.pauses->evaluation) return;
  const Model trained = std::exchange(setup.model, untrained(setup.model));
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
  for (std::size_t p = 0; p < runs.size(); ++p)
    runs[p].evaluation_step = passes[p].per_step(passes[p].result.iteration);
}

/// An iteration with other software [s].
double iteration_with(const SoftwareStack& other, ScenarioSetup& setup, SimEngine& engine, const RunOptions& options) {
  const SoftwareStack own = std::exchange(setup.stack, other);
  RunOptions quiet = options;
  quiet.details = false;
  const std::vector<PhaseRun> runs = run_phases(setup, engine, quiet, setup.irregularity.seeds.front(), nullptr, {});
  setup.stack = own;
  return per_iteration(runs, [](const PhaseRun& r) { return r.per_step(r.result.iteration); });
}

/// What each mechanism of the software stack costs: how much less an iteration of `iteration` s takes without it,
/// largest first.
std::string stack_costs(ScenarioSetup& setup, SimEngine& engine, const RunOptions& options, double iteration) {
  const SoftwareStack stack = setup.stack;
  const auto gain = [&](const SoftwareStack& other) {
    return iteration - iteration_with(other, setup, engine, options);
  };
  std::vector<std::pair<double, std::string>> costs;
  for (const auto& [mechanism, without] : stack.without_each()) costs.emplace_back(gain(without), mechanism);
  const double all = gain(SoftwareStack());
  if (costs.empty()) return "";
  std::ranges::stable_sort(costs, std::ranges::greater{}, &std::pair<double, std::string>::first);
  const TimeScale scale(iteration);
  std::string out =
      fmt::format("Software (stack {}) costs {} of an iteration of {}; without one of these it would be shorter by\n",
                  stack.name(), scale.text(without_rounding_noise(all, iteration)), scale.text(iteration));
  for (const auto& [seconds, mechanism] : costs) {
    const double cost = without_rounding_noise(seconds, iteration);
    out += fmt::format("  {:<20} {:>10}  {:5.1f} %\n", mechanism, scale.text(cost), 100 * cost / iteration);
  }
  return out;
}

}  // namespace

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

/// Each remedy takes as long to simulate as the scenario: of larger steps, minutes in all.
constexpr std::size_t kMostTasksToAdvise = 200'000;

/// How long an iteration takes with other settings; nothing where they do not fit into memory or the strategy cannot
/// do it.
std::optional<double> iteration_if_it_fits(const Scenario& scenario, const Registries& registries, SimEngine& engine) {
  try {
    ScenarioSetup setup = read_scenario(scenario, registries);
    const auto fits = [&](const PhaseSettings& phase) {
      return memory_excess(setup.compile(phase), setup.cluster).value <= 0;
    };
    if (!std::ranges::all_of(setup.phases, fits)) return std::nullopt;
    const std::vector<PhaseRun> runs = run_phases(setup, engine, {}, setup.irregularity.seeds.front(), nullptr, {});
    return per_iteration(runs, [](const PhaseRun& r) { return r.per_step(r.result.iteration); });
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

/// Of those changes with which a scenario fits into memory: how long an iteration then takes, shortest first. Children
/// try them, `parallel` at a time: each takes as long as the scenario did.
std::vector<Remedy> try_changes(const std::vector<StudyChange>& changes, const Scenario& scenario,
                                const Registries& registries, SimEngine& engine, int parallel) {
  std::vector<std::optional<double>> iterations(changes.size());
  const auto job = [&](int i) {
    Scenario other = scenario;
    const auto& settings = changes[static_cast<std::size_t>(i)].settings;
    other.settings.insert(other.settings.end(), settings.begin(), settings.end());
    const std::optional<double> iteration = iteration_if_it_fits(other, registries, engine);
    return iteration ? fmt::format("{:.17g}", *iteration) : std::string();
  };
  const auto take = [&](int i, const std::string& output) {
    if (!output.empty()) iterations[static_cast<std::size_t>(i)] = std::stod(output);
  };
  const int count = static_cast<int>(changes.size());
  try {
    run_forked(count, parallel, job,
               [&](int i, const JobOutcome& outcome) { take(i, outcome.finished ? outcome.output : ""); });
  } catch (const ConfigError&) {  // the system allows no further process: here, then
    for (int i = 0; i < count; ++i) take(i, job(i));
  }
  std::vector<Remedy> out;
  for (std::size_t i = 0; i < changes.size(); ++i)
    if (iterations[i]) out.push_back({changes[i].text, *iterations[i]});
  std::ranges::stable_sort(out, {}, &Remedy::iteration_s);
  return out;
}

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario, const Registries& registries, const RunOptions& options) {
  ScenarioSetup setup = read_scenario(scenario, registries);
  if (options.ready_engine.engine != nullptr && !options.ready_engine.fits(setup)) throw WrongEngine();
  std::optional<SimEngine> own;
  SimEngine& engine = options.ready_engine.engine != nullptr
                          ? *options.ready_engine.engine
                          : own.emplace(setup.cluster.platform_file.string(), setup.network);
  if (setup.learning) adapt_schedule(setup, engine);

  std::vector<PhaseRun> runs;  // of the first seed
  std::vector<ScenarioResult> by_seed;
  ChromeTrace trace;
  for (const std::uint64_t seed : setup.irregularity.seeds) {
    const bool first = by_seed.empty();
    const auto progress = [&, ended = static_cast<double>(by_seed.size())](double share) {
      options.progress((ended + share) / static_cast<double>(setup.irregularity.seeds.size()));
    };
    std::vector<PhaseRun> made =
        run_phases(setup, engine, options, seed, first && !options.trace_file.empty() ? &trace : nullptr,
                   options.progress ? std::function<void(double)>(progress) : nullptr);
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
  if (options.explain) {
    if (!longest->step.composition.empty())
      out.explanation = fmt::format("A step is put together from {}.\n", longest->step.composition);
    if (longest->step.steps > 1)
      out.explanation += fmt::format("An iteration below is {} steps of every worker.\n", longest->step.steps);
    out.explanation += explain(longest->step.graph, longest->result);
    if (setup.stack.name() != kIdealStack) out.explanation += stack_costs(setup, engine, options, out.iteration_s);
  }
  if (options.interval) {
    const ForecastInterval interval =
        interval_of(out.iteration_s, SoftwareStack(setup.stack),
                    [&](const SoftwareStack& other) { return iteration_with(other, setup, engine, options); });
    out.iteration_low_s = interval.low;
    out.iteration_high_s = interval.high;
  }
  if (options.details) out.details = details(setup, runs, by_seed);
  if (setup.learning) learn(setup, engine, runs, out);
  const bool advise = options.advise && longest->step.graph.tasks().size() <= kMostTasksToAdvise;
  std::optional<std::vector<Remedy>> remedies;
  if (advise && out.fits_memory && !*out.fits_memory)
    remedies = try_changes(memory_changes(scenario.config()), scenario, registries, engine, options.advisers);
  warn(setup, runs, remedies, out);
  const auto change =
      advise ? mesh_change(scenario.config(), setup.cluster, setup.phases.front().workers) : std::nullopt;
  if (change)
    for (const Remedy& other : try_changes({*change}, scenario, registries, engine, 1))
      if (std::string advice = mesh_advice(out.iteration_s, other); !advice.empty())
        out.warnings.push_back(std::move(advice));
  if (!options.trace_file.empty()) trace.write(options.trace_file);
  return out;
}

}  // namespace epocast
