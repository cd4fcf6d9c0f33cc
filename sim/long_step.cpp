#include "sim/long_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/executor.hpp"
#include "sim/recurrence.hpp"
#include "sim/result_check.hpp"

namespace epocast {
namespace {

constexpr double kEver = std::numeric_limits<double>::infinity();

/// Dates before which, and from which on, the next longer step can be cut and a copy of the last shift be put between.
struct Cut {
  double earliest = 0, latest = kEver;

  bool exists() const { return earliest <= latest; }
};

/// Narrows the cut by tasks of one name. Returns false if they do something else than the same at first and the same by
/// one shift later at last, with several shifts' worth of both in the middle.
bool narrow(const Ends& shorter, const Ends& longer, double shift, double tolerance, Cut& cut) {
  if (longer.size() < shorter.size()) return false;
  const std::size_t added = longer.size() - shorter.size();
  std::size_t same = 0, later = shorter.size();  // how many are the same, and from which on all come later
  while (same < shorter.size() && std::abs(longer[same] - shorter[same]) <= tolerance) ++same;
  while (later > 0 && std::abs(longer[later - 1 + added] - shorter[later - 1] - shift) <= tolerance) --later;
  if (later > same) return false;
  if (added == 0) {  // once in an iteration
    for (std::size_t i = 0; i < same; ++i)
      if (i < later) cut.earliest = std::max(cut.earliest, longer[i]);
    for (std::size_t i = later; i < shorter.size(); ++i)
      if (i >= same) cut.latest = std::min(cut.latest, longer[i]);
    return true;
  }
  const std::size_t seen = later + kRepetitions * added;
  if (same < seen) return false;
  cut.earliest = std::max(cut.earliest, longer[seen - 1]);
  if (same < longer.size()) cut.latest = std::min(cut.latest, longer[same]);
  return true;
}

bool repeats(const SimulatedStep& shorter, const SimulatedStep& longer) {
  const double shift = longer.result.iteration - shorter.result.iteration;
  const double tolerance = kShiftTolerance * longer.result.iteration;
  const EndsByName of_shorter = ends_by_name(shorter), of_longer = ends_by_name(longer);
  if (shift <= tolerance || of_shorter.size() != of_longer.size()) return false;
  Cut cut;
  for (auto a = of_shorter.begin(), b = of_longer.begin(); a != of_shorter.end(); ++a, ++b)
    if (a->first != b->first || !narrow(a->second, b->second, shift, tolerance, cut)) return false;
  return cut.exists();
}

/// What the slowest cycle of a step takes at least with the micro-batches that are left out after the first half of the
/// others: what leads from a task to the same of a later one, where the schedule repeats, does so again and again.
double bound_with(const ShortenedStep& step, const CyclicTaskGraph& graph, const CycleBound& bound) {
  using Kind = std::tuple<const std::string*, const std::string*, QueueId>;
  const auto kind = [&](std::uint32_t task) {
    const Task& of = graph.tasks()[task];
    return Kind{&of.label.operation.text(), &of.label.layer.text(), of.queue};
  };
  struct Passage {
    int micro_batch = 0;
    double date = 0;  ///< s from the beginning of the cycle
  };
  // A micro-batch may have several tasks of a kind: the first, the second and so on do not stand for each other.
  std::map<Kind, std::vector<std::uint32_t>> before;  // by kind and micro-batch: of that kind, so far
  for (const std::uint32_t task : bound.tasks) before[kind(task)].resize(static_cast<std::size_t>(step.micro_batches));
  std::vector<std::uint32_t> place(graph.tasks().size());
  const auto counts = [&](std::uint32_t task) {
    const int micro_batch = graph.tasks()[task].label.micro_batch;
    return micro_batch >= 0 && 2 * micro_batch < step.micro_batches;
  };
  for (std::uint32_t t = 0; t < place.size(); ++t)
    if (counts(t))
      if (const auto own = before.find(kind(t)); own != before.end())
        place[t] = own->second[static_cast<std::size_t>(graph.tasks()[t].label.micro_batch)]++;

  std::map<std::pair<Kind, std::uint32_t>, std::vector<Passage>> passages;
  double date = 0;
  for (std::size_t i = 0; i < bound.tasks.size(); ++i) {
    const std::uint32_t task = bound.tasks[i];
    if (counts(task)) passages[{kind(task), place[task]}].push_back({graph.tasks()[task].label.micro_batch, date});
    date += bound.durations[i];
  }
  double added = 0;
  for (const auto& [name, own] : passages)
    for (std::size_t i = 0; i < own.size(); ++i)
      for (std::size_t j = i + 1; j < own.size(); ++j)
        if (const int apart = own[j].micro_batch - own[i].micro_batch; apart > 0 && apart % step.repeat == 0)
          added = std::max(added, std::floor(static_cast<double>(step.left_out) / apart) * (own[j].date - own[i].date));
  const int iterations = std::accumulate(bound.lags.begin(), bound.lags.end(), 0);
  return bound.seconds + added / std::max(1, iterations);
}

/// Whether one iteration, which starts over, is all that a result consists of.
bool tells_of_one_iteration(const ExecutionResult& result) {
  return result.period && result.iterations_simulated == 1 && result.doubts.empty() && result.servers.empty() &&
         !result.ends.empty();
}

/// Whether both are of iterations that repeat, or of all of as many, and of ranks that stand for as many.
bool are_comparable(const ExecutionResult& a, const ExecutionResult& b) {
  const auto is_sound = [](const ExecutionResult& r) { return r.doubts.empty() && r.servers.empty(); };
  const bool as_often = a.period && b.period
                            ? a.period->length == b.period->length
                            : !a.period && !b.period && a.iterations_simulated == b.iterations_simulated;
  return is_sound(a) && is_sound(b) && a.folded == b.folded && as_often;
}

/// Of a step that repeats itself, as if `iterations` of it had been simulated.
ExecutionResult of_iterations(ExecutionResult step, std::int64_t iterations) {
  const double ratio = static_cast<double>(iterations) / static_cast<double>(step.iterations_simulated);
  const double more = static_cast<double>(iterations - step.iterations_simulated) * step.iteration;
  for (std::vector<double>* bytes : {&step.totals.sent, &step.totals.received, &step.totals.on_link})
    for (double& value : *bytes) value *= ratio;
  const double longer = (step.totals.makespan + more) / step.totals.makespan;
  step.totals.makespan += more;
  for (ActivityTimes& times : step.totals.activity) times = longer * times;
  for (WorkerReport& worker : step.workers) worker.ended += more;
  step.iterations_simulated = iterations;
  return step;
}

}  // namespace

namespace {

/// `b`, and `times` what it is more than `shorter`.
ExecutionResult extended(const ExecutionResult& shorter, const ExecutionResult& b, double times,
                         const SimEngine& engine) {
  const ExecutionResult a = of_iterations(shorter, b.iterations_simulated);
  const auto extend = [times](double& value, double before) { value += times * (value - before); };
  const auto extend_all = [&](std::vector<double>& values, const std::vector<double>& before) {
    for (std::size_t i = 0; i < values.size(); ++i) extend(values[i], before[i]);
  };
  ExecutionResult out = b;
  out.timeline = {};
  out.ends.clear();
  extend(out.total, a.total);
  extend(out.iteration, a.iteration);
  if (out.period) extend(out.period->shift, a.period->shift);
  extend(out.metrics.compute, a.metrics.compute);
  extend(out.metrics.communication, a.metrics.communication);
  extend(out.metrics.exposed_communication, a.metrics.exposed_communication);
  extend(out.metrics.bytes, a.metrics.bytes);
  extend(out.totals.makespan, a.totals.makespan);
  extend_all(out.totals.sent, a.totals.sent);
  extend_all(out.totals.received, a.totals.received);
  extend_all(out.totals.on_link, a.totals.on_link);
  for (std::size_t d = 0; d < out.totals.activity.size(); ++d)
    out.totals.activity[d] = b.totals.activity[d] + times * (b.totals.activity[d] - a.totals.activity[d]);
  for (std::size_t w = 0; w < out.workers.size(); ++w) extend(out.workers[w].ended, a.workers[w].ended);
  for (std::size_t pair = 0; pair < out.traffic.size(); ++pair) extend(out.traffic[pair].bytes, a.traffic[pair].bytes);
  out.metrics.max_link_utilization = 0;
  for (int link = 0; link < static_cast<int>(out.totals.on_link.size()); ++link) {
    if (engine.link_sharing(link) == LinkSharing::kFatpipe) continue;
    const double busy = out.totals.on_link[static_cast<std::size_t>(link)] / engine.link_bandwidth(link) /
                        static_cast<double>(out.iterations_simulated) / out.iteration;
    if (busy <= out.metrics.max_link_utilization) continue;
    out.metrics.max_link_utilization = busy;
    out.metrics.busiest_link = engine.link_name(link);
  }
  out.doubts = doubts_about(out, false);
  out.exact = b.exact && out.doubts.empty();
  return out;
}

}  // namespace

std::optional<ExecutionResult> long_step(const SimulatedStep& shorter, const SimulatedStep& longer, double times,
                                         const SimEngine& engine) {
  const ExecutionResult &a = shorter.result, &b = longer.result;
  if (!tells_of_one_iteration(a) || !tells_of_one_iteration(b) || a.folded != b.folded || !repeats(shorter, longer))
    return std::nullopt;
  return extended(a, b, times, engine);
}

double unexplained_growth(const ExecutionResult& shorter, const ExecutionResult& longer) {
  double most = 0;
  for (std::size_t d = 0; d < longer.own_work.size(); ++d)
    most = std::max(most, longer.own_work[d] - shorter.own_work[d]);
  return longer.iteration - shorter.iteration - most;
}

double tasks_of(const TrainingStep& step) {
  const auto tasks = static_cast<double>(step.graph.tasks().size());
  if (!step.shortened) return tasks;
  return tasks * (step.shortened->micro_batches + step.shortened->left_out) / step.shortened->micro_batches;
}

ShorterSteps::ShorterSteps(std::function<TrainingStep(int micro_batches)> of_size, const Cluster& cluster,
                           SimEngine& engine, ExecutionOptions how, Elsewhere elsewhere)
    : of_size_(std::move(of_size)),
      cluster_(cluster),
      engine_(engine),
      how_(std::move(how)),
      elsewhere_(std::move(elsewhere)) {
  how_.only_pace = false;
  how_.record_ends = true;
}

bool ShorterSteps::may_tell(const TrainingStep& step) {
  return step.shortened && (step.shortened->repeats || tasks_of(step) > kManyTasks);
}

std::optional<ExecutionResult> ShorterSteps::tell(TrainingStep& step) const {
  ExecutionOptions how = how_;
  how.most_executions = static_cast<std::size_t>(static_cast<double>(how.most_executions) *
                                                 static_cast<double>(step.graph.tasks().size()) / tasks_of(step));
  try {
    const ShortenedStep& of = *step.shortened;
    const double tasks_of_more = tasks_of(step) * of.more / (of.micro_batches + of.left_out);
    if (of.more > 0 && tasks_of_more <= kMostToRepeat) return std::nullopt;
    // Whole, it would take as many iterations as this one does until it repeats itself.
    const auto takes_long = [&](std::int64_t iterations) {
      return tasks_of(step) * static_cast<double>(iterations) > kManyTasks;
    };
    const bool may_be_estimated = takes_long(ShortenedStep::kIfTheyOverlap) && of.micro_batches <= 2 * of.left_out;
    how.record_own_work = may_be_estimated;
    std::function<std::optional<ExecutionResult>()> shorter;
    const bool is_long = static_cast<double>(step.graph.tasks().size()) * ShortenedStep::kIfTheyOverlap > kManyTasks;
    if (may_be_estimated && elsewhere_ && (!of.alone || is_long))
      shorter = elsewhere_([this, of, how] { return one_window_less(of, how); });
    ExecutionResult seen = simulate(step, how);
    if (seen.tells_whole) return completed(std::move(seen), step);
    const bool alone = tells_of_one_iteration(seen);
    if (alone && step.shortened->repeats && !seen.folded)
      if (const auto recurrence = recurrence_of(ends_by_name({step.graph, seen}), step.shortened->micro_batches,
                                                step.shortened->repeat, seen.iteration))
        seen.repeats_after = recurrence->after;
    if (alone && seen.repeats_after > 0)
      if (auto told = tell(step, seen, how)) return told;
    if (!may_be_estimated || !takes_long(seen.iterations_simulated)) return std::nullopt;
    const std::optional<ExecutionResult> by_then = shorter ? shorter() : std::nullopt;
    return estimate(step, seen, by_then ? *by_then : one_window_less(of, how));
  } catch (const SimulationError&) {
    return std::nullopt;
  }
}

std::optional<ExecutionResult> ShorterSteps::tell(TrainingStep& step, const ExecutionResult& seen,
                                                  const ExecutionOptions& how) const {
  const int after = seen.repeats_after;
  const auto by_shorter = [&](const TrainingStep& longer, const ExecutionResult& of_longer) {
    const ShortenedStep& of = *longer.shortened;
    const TrainingStep shorter = of_size_(of.micro_batches - after);
    ExecutionOptions boundless = how;
    boundless.find_bound = false;  // the longer one's is taken
    auto told = long_step({shorter.graph, execute(shorter.graph, cluster_, engine_, boundless)},
                          {longer.graph, of_longer}, static_cast<double>(of.left_out) / after, engine_);
    if (told) complete(*told, longer);
    return told;
  };
  const int rest = step.shortened->left_out % after;
  if (rest == 0) return by_shorter(step, seen);
  TrainingStep longer = of_size_(step.shortened->micro_batches + rest);
  ExecutionResult of_longer = simulate(longer, how);
  auto told = of_longer.tells_whole ? completed(std::move(of_longer), longer) : by_shorter(longer, of_longer);
  if (told) step = std::move(longer);
  return told;
}

ExecutionResult ShorterSteps::simulate(const TrainingStep& step, ExecutionOptions how) const {
  if (step.shortened->repeats) how.shortened = &*step.shortened;
  return execute(step.graph, cluster_, engine_, how);
}

ExecutionResult ShorterSteps::completed(ExecutionResult told, const TrainingStep& longer) {
  told.ends.clear();
  complete(told, longer);
  return told;
}

ExecutionResult ShorterSteps::one_window_less(const ShortenedStep& step, ExecutionOptions how) const {
  how.find_bound = how.record_ends = false;
  how.progress = {};  // here or in another process: one of them tells
  return execute(of_size_(step.micro_batches - step.window).graph, cluster_, engine_, how);
}

std::optional<ExecutionResult> ShorterSteps::estimate(const TrainingStep& step, const ExecutionResult& longer,
                                                      const ExecutionResult& shorter) const {
  const ShortenedStep& of = *step.shortened;
  if (!are_comparable(shorter, longer) || longer.own_work.empty()) return std::nullopt;
  const double times = static_cast<double>(of.left_out) / of.window;
  ExecutionResult out = extended(shorter, longer, times, engine_);
  const double doubt = std::abs(unexplained_growth(shorter, longer)) * times / out.iteration;
  if (doubt > kMostDoubt) return std::nullopt;
  complete(out, step);
  out.exact = false;
  out.remarks.push_back(fmt::format(
      "the step is estimated from steps of {} and {} of its {} micro-batches: the busiest device works for all the "
      "time by which they differ, but for {:.1g} % of an iteration; whole it would take long to simulate (--exact "
      "does)",
      of.micro_batches - of.window, of.micro_batches, of.micro_batches + of.left_out, 100 * std::max(doubt, 1e-9)));
  return out;
}

void ShorterSteps::complete(ExecutionResult& told, const TrainingStep& longer) {
  if (told.bound) told.bound->seconds = bound_with(*longer.shortened, longer.graph, *told.bound);
  told.doubts = doubts_about(told, false);
  told.exact = told.exact && told.doubts.empty();
}

}  // namespace epocast
