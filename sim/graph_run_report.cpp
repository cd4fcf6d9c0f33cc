#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "sim/error.hpp"
#include "sim/graph_run.hpp"
#include "sim/recurrence.hpp"
#include "sim/strategy.hpp"

namespace epocast {

std::vector<std::uint32_t> GraphRun::started() const {
  std::vector<std::uint32_t> firings;
  firings.reserve(states_.size());
  for (const InstanceState& s : states_) firings.push_back(s.started);
  return firings;
}

void GraphRun::check_all_ended() const {
  std::vector<double> ended;
  ended.reserve(states_.size());
  for (const InstanceState& s : states_) ended.push_back(s.ended - start_);
  const std::string deadlock = describe_deadlock({compiled_, cluster_, readiness_, started(), ended, stuck_,
                                                  pool_.stealing() ? 0 : pool_.limit(), engine_.now() - start_});
  if (!deadlock.empty()) throw SimulationError(deadlock);
}

/// Interchangeable ranks have the same cycles: one of them is enough.
bool GraphRun::bound_from_one_rank() const {
  return !compiled_.folded && network_.ranks_interchangeable() && options_.slowdown.empty();
}

/// How long an instance of the task takes if nothing delays it, or slows it down [s].
double GraphRun::usual_duration(const Task& task, Instance i) const {
  if (std::holds_alternative<Compute>(task.work)) return durations_.usual(i);
  const bool fused = fusion_.serves(i) && !steady_fused_.empty();  // the same run together in every iteration
  const auto* collective = std::get_if<Collective>(&task.work);
  double software = collective != nullptr ? overhead(*collective, collective->bytes.value) : 0;
  if (collective == nullptr || !collective->measured) software += processor_wait(i);
  return software + (fused ? steady_fused_[i.task] : network_.idle_time(i.task, i.rank));
}

CycleBound GraphRun::bound() const {
  const bool one_rank = bound_from_one_rank();
  const CompiledGraph folded = one_rank ? compile(graph_, true) : CompiledGraph{};
  const CompiledGraph& used = one_rank ? folded : compiled_;
  std::vector<ServiceCount> counts;
  counts.reserve(steady_.size());
  for (ServiceCount c : used.slot_discipline.empty() ? std::vector<ServiceCount>{} : steady_)
    if (used.tasks[c.task].first_slot < 0)
      counts.push_back(c);
    else
      used.for_each_slot({c.task, c.rank}, [&](std::uint32_t slot) {
        c.slot = static_cast<std::int32_t>(slot);
        counts.push_back(c);
      });
  const auto duration = [&](Instance i) { return usual_duration(used.task(i.task), i); };
  return maximum_cycle_ratio(used, duration, counts);
}

/// What was simulated, in iterations of all workers.
double GraphRun::iterations_done() const {
  if (stuck_.empty()) return pool_.iterations();
  double steps = 0;
  const std::vector<WorkerReport> workers = report_workers(worker_sources());
  for (const WorkerReport& worker : workers) steps += static_cast<double>(worker.steps);
  return std::max(steps, 1.0) / static_cast<double>(workers.size());
}

/// Whether workers that do not wait for each other end more than a tenth of the time apart.
bool GraphRun::paces_differ(double makespan) const {
  if (!graph_.ranks_are_independent()) return false;
  const std::vector<WorkerReport> workers = report_workers(worker_sources());
  return std::ranges::any_of(workers, [&](const WorkerReport& worker) { return worker.ended < 0.9 * makespan; });
}

/// Times per iteration: of the period, or averages over what comes after the first tenth and the last change. But where
/// some get ahead of others, all that they do counts: they may have done most of it by then. So it does for computing
/// after a change as well, which is the same work before and after. Who has ended before the loop is steady, having
/// waited for its first iteration only, has seen shorter iterations than go on: these are as long as the bound says.
void GraphRun::measure_pace(ExecutionResult& result) const {
  const std::int64_t known = observer_.iterations();
  const std::int64_t window = known - std::max(known / 10, std::min(calm_at_, known - 1));
  if (period_) {
    result.iteration = period_->iteration();
    result.metrics = metrics_;
  } else if (!stuck_.empty() || known == 0) {
    result.iteration = result.totals.makespan / iterations_done();
    if (known > 0) result.metrics = observer_.window(known);
  } else {
    std::tie(result.iteration, result.iteration_ci95) = observer_.mean_iteration(window);
    if (result.exact && result.bound) result.iteration = std::max(result.iteration, result.bound->seconds);
    result.metrics = observer_.window(window);
    if (!paces_differ(result.totals.makespan)) return;
    const StepMetrics all = observer_.window(known);
    if (calm_at_ == 0) result.metrics = all;
    result.metrics.compute = all.compute;
  }
}

/// Every iteration sends the same bytes over the same links.
void GraphRun::measure_traffic(ExecutionResult& result) const {
  const double iterations = iterations_done();
  result.metrics.bytes = traffic_.total() / iterations;
  if (!traffic_.pairs().empty()) {
    std::map<int, DeviceId> device_of;
    for (std::size_t d = 0; d < cluster_.devices.size(); ++d)
      device_of.emplace(network_.host(static_cast<DeviceId>(d)), static_cast<DeviceId>(d));
    for (const auto& [pair, bytes] : traffic_.pairs())
      result.traffic.push_back({device_of.at(pair.first), device_of.at(pair.second), bytes / iterations});
  }
  // What repeats itself does so after the last change.
  const double until = options_.elapsed + last_end_ - start_;
  const double from = period_ ? until : options_.elapsed;
  const LinkLoad busiest = traffic_.busiest_link([&](int link) {
    return disturbed_links_ ? disturbed_links_->mean_bandwidth(link, from, until) : engine_.link_bandwidth(link);
  });
  if (busiest.link < 0 || result.iteration <= 0) return;
  result.metrics.max_link_utilization = busiest.seconds / iterations / result.iteration;
  // An estimated iteration may come out too short.
  if (!period_) result.metrics.max_link_utilization = std::min(result.metrics.max_link_utilization, 1.0);
  result.metrics.busiest_link = engine_.link_name(busiest.link);
}

WorkerSources GraphRun::worker_sources() const {
  return {compiled_, states_, obsolete_, dropped_, versions_, barriers_, stuck_, start_};
}

/// What the micro-batches that a shortened step leaves out add to an iteration, where it repeats itself.
std::optional<StepGrowth> GraphRun::left_out(ExecutionResult& result) const {
  // Whatever is not of a set of flows is not known by micro-batch.
  if (!clock_ || !period_ || period_->length != 1 || traffic_.total() > 0 || !servers_.report(1).empty())
    return std::nullopt;
  const ShortenedStep& step = *options_.shortened;
  const auto recurrence =
      recurrence_of(ends_by_name({graph_, result}), step.micro_batches, step.repeat, period_->iteration());
  if (!recurrence) return std::nullopt;
  result.repeats_after = recurrence->after;
  if (step.left_out % recurrence->after != 0 || reaches_into(recurrence->since, recurrence->until)) return std::nullopt;
  const auto turn = clock_->growth(*recurrence, step.micro_batches);
  if (!turn) return std::nullopt;
  result.tells_whole = true;
  return *turn * (static_cast<double>(step.left_out) / recurrence->after);
}

/// Whether anything was under way between two dates that happens once in an iteration, or is of another one, which does
/// the same one period before or after.
bool GraphRun::reaches_into(double since, double until) const {
  const auto was_under_way = [&](const InstanceState& s) {
    return s.ended - start_ > since && s.began - start_ < until;
  };
  for (std::uint32_t t = 0; t < compiled_.tasks.size(); ++t)
    if (graph_.tasks()[t].label.micro_batch < 0 && was_under_way(state({t, 0}))) return true;
  return pool_.iterations() > 1 && std::ranges::any_of(states_, [&](const InstanceState& s) {
           return s.ended - period_->shift - start_ > since || s.began + period_->shift - start_ < until;
         });
}

/// Counts them, in each iteration.
void GraphRun::add(const StepGrowth& more) {
  period_->shift += more.seconds;
  const StepGrowth in_all = more * pool_.iterations();
  traffic_.count_sets(in_all.on_links, in_all.off_links);
  double workers = 0;
  for (const CountedDevice& worker : clock_->workers()) workers += worker.count;
  for (std::size_t w = 0; w < more.activity.size(); ++w) {
    const double share = clock_->workers()[w].count / workers;
    metrics_.compute += share * more.activity[w].compute();
    metrics_.communication += share * more.activity[w].communication();
    metrics_.exposed_communication += share * more.activity[w].communication_only;
  }
}

/// By device: how long the computations and collectives for an iteration's micro-batches take that it takes part in,
/// one after the other where one waits for the other, if nothing else delays them. Of devices that do the same, or are
/// of one team, the first has it. REQUIRES: folded.
std::vector<double> GraphRun::own_work() const {
  const auto counts = [&](std::uint32_t t) {
    return compiled_.task(t).label.micro_batch >= 0 && !std::holds_alternative<Transfer>(compiled_.task(t).work);
  };
  const auto each_next = [&](std::uint32_t t, auto visit) {
    const CompiledTask& task = compiled_.tasks[t];
    for (std::uint32_t k = 0; k < task.out_count; ++k)
      if (const CompiledEdge& edge = compiled_.edges[compiled_.out[task.first_out + k]]; edge.lag == 0)
        visit(edge.after);
  };
  const auto tasks = static_cast<std::uint32_t>(compiled_.tasks.size());
  std::vector<std::uint32_t> waits_for(tasks, 0), order;
  for (std::uint32_t t = 0; t < tasks; ++t) each_next(t, [&](std::uint32_t next) { ++waits_for[next]; });
  order.reserve(tasks);
  for (std::uint32_t t = 0; t < tasks; ++t)
    if (waits_for[t] == 0) order.push_back(t);
  std::vector<double> chain(tasks, 0);  // before the task
  std::vector<double> longest(cluster_.devices.size(), 0);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t t = order[k];
    const DeviceId device = compiled_.device({t, 0});
    const double until = counts(t) ? chain[t] + usual_duration(compiled_.task(t), {t, 0}) : 0;
    longest[CyclicTaskGraph::index(device)] = std::max(longest[CyclicTaskGraph::index(device)], until);
    each_next(t, [&](std::uint32_t next) {
      if (compiled_.device({next, 0}) == device) chain[next] = std::max(chain[next], until);
      if (--waits_for[next] == 0) order.push_back(next);
    });
  }
  return longest;
}

ExecutionResult GraphRun::run() {
  engine_.set_listener(*this);
  for (std::uint32_t t = 0; t < compiled_.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < compiled_.tasks[t].width; ++r)
      if (readiness_.ready({t, r}) && state({t, r}).started == 0) offer({t, r});
  finish_instant();
  try {
    engine_.run();
  } catch (const PaceIsKnown&) {
    ExecutionResult pace;
    pace.iterations_simulated = detector_.completed();
    pace.period = period_;
    pace.folded = compiled_.folded;
    measure_pace(pace);
    return pace;
  }
  check_all_ended();

  ExecutionResult result;
  result.folded = compiled_.folded;
  if (options_.record_ends)
    for (const InstanceState& state : states_) result.ends.push_back(state.ended - start_);
  const std::optional<StepGrowth> more = left_out(result);
  if (more) add(*more);
  if (compiled_.folded) traffic_.spread(network_.symmetry());
  const StepGrowth in_all = more ? *more * pool_.iterations() : StepGrowth{};
  const double makespan = last_end_ - start_ + in_all.seconds;
  const double missing = static_cast<double>(options_.iterations) - pool_.iterations();
  result.iterations_simulated = std::llround(pool_.iterations());
  result.period = period_;
  result.totals.makespan = makespan;
  result.exact = missing == 0 || period_.has_value();
  const bool always_the_same = !options_.noise.any() && options_.slow_devices.empty() && options_.slow_links.empty();
  const bool wanted = options_.find_bound || (result.exact && !period_);  // see measure_pace()
  if (wanted && always_the_same && !pool_.stealing() && !readiness_.has_quorums()) result.bound = bound();
  measure_pace(result);
  measure_traffic(result);
  result.total = makespan + missing * (stuck_.empty() ? result.iteration : makespan / pool_.iterations());
  result.staleness = versions_.all();
  result.metrics.mean_staleness = result.staleness.mean();
  if (result.staleness.writes > 0) result.metrics.max_staleness = result.staleness.max;

  for (std::size_t d = 0; d < cluster_.devices.size(); ++d)
    result.totals.activity.push_back(activity_.accounts().times(static_cast<DeviceId>(d), last_end_));
  for (std::size_t w = 0; w < in_all.activity.size(); ++w) {
    ActivityTimes& times = result.totals.activity[CyclicTaskGraph::index(clock_->workers()[w].device)];
    times = times + in_all.activity[w];
  }
  result.totals.sent = traffic_.sent();
  result.totals.received = traffic_.received();
  result.totals.on_link = traffic_.on_link();
  result.workers = report_workers(worker_sources());
  for (WorkerReport& worker : result.workers) worker.ended += in_all.seconds;
  result.servers = servers_.report(makespan);
  if (options_.record_own_work && compiled_.folded) result.own_work = own_work();
  result.algorithms = network_.algorithms();
  result.timeline = std::move(timeline_);
  return result;
}

}  // namespace epocast
