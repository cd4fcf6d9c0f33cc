#include "sim/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>

#include "sim/collectives/runner.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/cycle_bound.hpp"
#include "sim/error.hpp"
#include "sim/network_plan.hpp"
#include "sim/obsolescence.hpp"
#include "sim/queue_slots.hpp"
#include "sim/readiness.hpp"
#include "sim/step_observer.hpp"
#include "sim/step_pool.hpp"
#include "sim/traffic.hpp"

namespace epocast {
namespace {

template <class Id>
constexpr std::size_t idx(Id id) {
  return static_cast<std::size_t>(id);
}

// Upper 16 bits of an engine token: whose event it is.
enum Tag : std::uint16_t { kTaskTimer, kTaskFlow, kCollectiveTimer, kCollectiveFlow };

std::uint64_t pack(Tag tag, Instance i) { return std::uint64_t{tag} << 48 | std::uint64_t{i.task} << 24 | i.rank; }
Instance unpack(std::uint64_t token) {
  return {static_cast<std::uint32_t>(token >> 24 & 0xffffff), static_cast<std::uint32_t>(token & 0xffffff)};
}

/// One run of one graph. The token game decides what is ready, queues decide who goes first, the engine tells when
/// things end; everything else here is bookkeeping.
class Execution final : SimEngine::Listener {
 public:
  Execution(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine, const NetworkPlan& network,
            const ExecutionOptions& options, bool folded);

  ExecutionResult run();

 private:
  void on_timer(std::uint64_t token) override;
  void on_flow_done(std::uint64_t token) override;

  void offer(Instance i);
  void begin(Instance i);
  void finish(Instance i);
  void finish_instant();
  void finish_collective(std::uint64_t id);
  void account(Instance i, bool begins);
  void observe(Instance i, std::int64_t iteration, bool happened);
  void stop_at(std::int64_t iterations);
  bool sample_is_large_enough(std::int64_t iterations) const;
  bool is_obsolete(Instance i);
  std::vector<WorkerReport> report_workers() const;
  void check_all_ended() const;
  double compute_time(Instance i, std::int64_t iteration) const;
  void measure_traffic(ExecutionResult& result) const;
  bool bound_from_one_rank() const;
  std::vector<ServiceCount> service_counts() const;
  CycleBound bound() const;
  std::vector<DeviceId> simulated_workers() const;

  const CyclicTaskGraph& graph_;
  const Cluster& cluster_;
  SimEngine& engine_;
  const NetworkPlan& network_;
  const ExecutionOptions& options_;
  CompiledGraph compiled_;
  Readiness readiness_;
  QueueSlots slots_;
  TrafficCounter traffic_;
  CollectiveRunner collectives_;
  ActivityAccounts activity_;
  VersionCounter versions_;
  SteadyStateDetector detector_;
  StepObserver observer_;

  double start_;
  StepPool pool_;
  VoidIterations obsolete_;
  std::int64_t max_started_ = 0;
  std::vector<std::uint32_t> started_;  ///< by instance
  std::vector<double> began_;           ///< by instance: when it last began
  std::vector<double> ended_;           ///< by instance: when it last ended
  /// What is void takes part in the token game only, and in its queue if its turn has come there.
  enum class Firing : std::uint8_t { real, void_outside_queue, void_in_queue };
  std::vector<Firing> firing_;         ///< by instance
  std::vector<std::int64_t> dropped_;  ///< by rank
  struct Turn {
    std::uint64_t order = 0;  ///< of its last beginning among all
    bool waits = false;       ///< in line for the next one
  };
  std::vector<Turn> turns_;              ///< by instance that waits for a slot
  std::vector<std::size_t> first_turn_;  ///< by task: of its rank 0
  std::uint64_t beginnings_ = 0;
  std::vector<ServiceCount> steady_;  ///< when the period was found, if it is 1
  std::deque<Instance> instant_;      ///< ended at once, still to be finished
  std::optional<Period> period_;
  bool running_down_ = false;  ///< some instance has ended its last iteration
  StepMetrics metrics_;
  Timeline timeline_;
};

bool has_quorum(const CyclicTaskGraph& graph) {
  return std::any_of(graph.tasks().begin(), graph.tasks().end(), [](const Task& task) { return task.quorum > 0; });
}

std::size_t max_ranks(const CyclicTaskGraph& graph) {
  std::size_t most = 1;
  for (const Group& group : graph.groups()) most = std::max(most, group.devices.size());
  return most;
}

Execution::Execution(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine,
                     const NetworkPlan& network, const ExecutionOptions& options, bool folded)
    : graph_(graph),
      cluster_(cluster),
      engine_(engine),
      network_(network),
      options_(options),
      compiled_(compile(graph, folded)),
      readiness_(compiled_),
      slots_(compiled_),
      traffic_(engine),
      collectives_(engine, traffic_, kCollectiveTimer, kCollectiveFlow, folded),
      activity_(cluster.devices.size(), engine.now()),
      versions_(graph.stores().size(), max_ranks(graph)),
      detector_(compiled_.instances, compiled_.max_lag),
      observer_(activity_, simulated_workers(), 66, engine.now()),
      start_(engine.now()),
      pool_(compiled_, options),
      obsolete_(compiled_),
      started_(compiled_.instances, 0),
      began_(compiled_.instances, 0),
      ended_(compiled_.instances, engine.now()),
      firing_(compiled_.instances, Firing::real),
      dropped_(max_ranks(graph), 0) {
  for (const CompiledTask& task : compiled_.tasks) {
    first_turn_.push_back(turns_.size());
    if (task.first_slot >= 0) turns_.resize(turns_.size() + task.width);
  }
}

std::vector<DeviceId> Execution::simulated_workers() const {
  std::vector<bool> computes(cluster_.devices.size(), false);
  for (const Queue& queue : graph_.queues()) {
    if (queue.role == QueueRole::server) continue;
    const auto& devices = graph_.group(queue.group).devices;
    for (std::size_t r = 0; r < (compiled_.folded ? 1 : devices.size()); ++r) computes[idx(devices[r])] = true;
  }
  std::vector<DeviceId> out;
  for (std::size_t d = 0; d < computes.size(); ++d)
    if (computes[d]) out.push_back(static_cast<DeviceId>(d));
  return out;
}

// The life of an instance: offered when its tokens are there, in line on its queue, begun, finished.

void Execution::offer(Instance i) {
  std::uint32_t& started = started_[compiled_.instance_id(i)];
  if (!pool_.may_start(i, started)) return;
  readiness_.fire(i);
  max_started_ = std::max<std::int64_t>(max_started_, ++started);
  firing_[compiled_.instance_id(i)] = is_obsolete(i) ? Firing::void_outside_queue : Firing::real;
  if (firing_[compiled_.instance_id(i)] != Firing::real) {
    instant_.push_back(i);
  } else if (slots_.waits_for_slot(i)) {
    turns_[first_turn_[i.task] + i.rank].waits = true;
    slots_.enter(i, started, [this](Instance next) { begin(next); });
  } else {
    begin(i);
  }
}

/// Whether the instance, whose turn has come, is obsolete.
bool Execution::is_obsolete(Instance i) {
  if (!obsolete_.any()) return false;
  const auto started = [this](std::uint32_t join) {
    return std::int64_t{started_[compiled_.tasks[join].first_instance]};
  };
  return obsolete_.check(i, std::int64_t{started_[compiled_.instance_id(i)]} - 1, started);
}

double Execution::compute_time(Instance i, std::int64_t iteration) const {
  const double base = std::get<Compute>(compiled_.task(i.task).work).duration.value;
  const Queue* queue =
      compiled_.task(i.task).queue == QueueId::none ? nullptr : &graph_.queue(compiled_.task(i.task).queue);
  double factor = 1;
  if (!options_.slowdown.empty() && queue != nullptr) {
    const auto& devices = graph_.group(queue->group).devices;
    factor = options_.slowdown[idx(devices[devices.size() == 1 ? 0 : i.rank])];
  }
  return base * factor * (iteration < 0 ? 1 : options_.noise.factor(i.task, i.rank, iteration));
}

void Execution::begin(Instance i) {
  const Task& task = compiled_.task(i.task);
  const std::uint64_t id = compiled_.instance_id(i);
  const double now = engine_.now();
  began_[id] = now;
  if (slots_.waits_for_slot(i)) {
    turns_[first_turn_[i.task] + i.rank] = {++beginnings_, false};
    if (is_obsolete(i)) {
      firing_[id] = Firing::void_in_queue;
      instant_.push_back(i);
      return;
    }
  }
  account(i, true);
  if (task.version.store != StoreId::none && task.version.kind == VersionEffect::read_at_start)
    versions_.read(task.version.store, i.rank);

  if (std::holds_alternative<Compute>(task.work)) {
    const double duration = compute_time(i, started_[id] - 1);
    if (duration > 0)
      engine_.start_timer(now + duration, pack(kTaskTimer, i));
    else
      instant_.push_back(i);
  } else if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
    const auto [from, to] = network_.ends(*transfer, i.rank);
    if (from == to)
      instant_.push_back(i);
    else
      engine_.start_timer(now + engine_.route(from, to).latency, pack(kTaskTimer, i));
  } else {
    collectives_.start(network_.collective(i.task), network_.hosts(task.ranks), i.task);
  }
}

void Execution::on_timer(std::uint64_t token) {
  if (token >> 48 == kCollectiveTimer) {
    finish_collective(collectives_.on_timer(token));
  } else {
    const Instance i = unpack(token);
    if (const auto* transfer = std::get_if<Transfer>(&compiled_.task(i.task).work)) {
      const auto [from, to] = network_.ends(*transfer, i.rank);
      engine_.start_flow(from, to, transfer->bytes.value, pack(kTaskFlow, i));
    } else {
      finish(i);
    }
  }
  finish_instant();
}

void Execution::on_flow_done(std::uint64_t token) {
  if (token >> 48 == kCollectiveFlow) {
    finish_collective(collectives_.on_flow_done(token));
  } else {
    const Instance i = unpack(token);
    const auto& transfer = std::get<Transfer>(compiled_.task(i.task).work);
    const auto [from, to] = network_.ends(transfer, i.rank);
    traffic_.count(from, to, transfer.bytes.value);
    finish(i);
  }
  finish_instant();
}

void Execution::finish_collective(std::uint64_t id) {
  if (id != CollectiveRunner::kNone) finish(Instance{static_cast<std::uint32_t>(id), 0});
}

void Execution::finish_instant() {
  while (!instant_.empty()) {
    const Instance i = instant_.front();
    instant_.pop_front();
    finish(i);
  }
}

void Execution::finish(Instance i) {
  const Task& task = compiled_.task(i.task);
  const std::uint64_t id = compiled_.instance_id(i);
  const std::int64_t iteration = std::int64_t{started_[id]} - 1;
  const Firing firing = firing_[id];
  ended_[id] = engine_.now();
  if (firing == Firing::real) {
    account(i, false);
    if (task.version.store != StoreId::none && task.version.kind == VersionEffect::write_at_end)
      versions_.write(task.version.store, i.rank, iteration > 0 || options_.iterations == 1);
  }
  observe(i, iteration, firing == Firing::real);
  readiness_.finish(
      i, [this](Instance next) { offer(next); },
      [&](std::uint32_t) { dropped_[i.rank] += obsolete_.skipped(i, iteration) ? 0 : 1; });
  if (slots_.waits_for_slot(i) && firing != Firing::void_outside_queue)
    slots_.leave(i, [this](Instance next) { begin(next); });
}

void Execution::account(Instance i, bool begins) {
  const Task& task = compiled_.task(i.task);
  const double now = engine_.now();
  if (std::holds_alternative<Compute>(task.work)) {
    if (task.queue == QueueId::none || graph_.queue(task.queue).role != QueueRole::compute) return;
    const DeviceId device = compiled_.device(i);
    begins ? activity_.compute_begins(device, now) : activity_.compute_ends(device, now);
    return;
  }
  const auto change = [&](DeviceId device) {
    begins ? activity_.communication_begins(device, now) : activity_.communication_ends(device, now);
  };
  if (std::holds_alternative<Transfer>(task.work)) {
    change(compiled_.device(i));
  } else {
    const auto& devices = graph_.group(task.ranks).devices;
    const std::size_t ranks = compiled_.folded ? 1 : devices.size();
    for (std::size_t r = 0; r < ranks; ++r) change(devices[r]);
  }
}

void Execution::observe(Instance i, std::int64_t iteration, bool happened) {
  const std::uint64_t id = compiled_.instance_id(i);
  const double now = engine_.now();
  if (options_.record_timeline && happened) {
    if (timeline_.intervals.size() < options_.max_intervals)
      timeline_.intervals.push_back({i.task, i.rank, iteration, began_[id] - start_, now - start_});
    else
      timeline_.truncated = true;
  }
  if (pool_.stealing()) {
    if (!pool_.iteration_ended(i, iteration)) return;
    observer_.iteration_ended(now);
    if (!options_.exact && sample_is_large_enough(pool_.completed())) stop_at(pool_.completed());
    return;
  }
  running_down_ |= iteration + 1 >= pool_.limit();
  if (!detector_.record(id, iteration, now)) return;

  observer_.iteration_ended(now);
  if (period_ || running_down_) return;  // what the last ones do when others are done is no steady state
  if (options_.noise.compute_cv > 0) {
    if (!options_.exact && sample_is_large_enough(detector_.completed())) stop_at(max_started_);
    return;
  }
  period_ = detector_.find_period();
  if (period_) {
    if (period_->length == 1) steady_ = service_counts();
    metrics_ = observer_.window(period_->length);
    // Nothing has started beyond max_started_ yet, so ending there changes nothing that has happened; whole periods
    // between there and the real end can be added by arithmetic.
    const std::int64_t missing = std::max<std::int64_t>(0, options_.iterations - max_started_);
    if (!options_.exact) stop_at(options_.iterations - missing / period_->length * period_->length);
  } else if (!options_.exact && sample_is_large_enough(detector_.completed())) {
    stop_at(max_started_);
  }
}

/// Whether enough iterations are simulated for an estimate: with noise a fixed number; without, when patience is over.
bool Execution::sample_is_large_enough(std::int64_t iterations) const {
  if (options_.noise.compute_cv > 0) return iterations >= options_.sample_iterations;
  constexpr std::int64_t kFewest = 100;
  return iterations >= kFewest && iterations * static_cast<std::int64_t>(compiled_.instances) >= options_.patience;
}

void Execution::stop_at(std::int64_t iterations) { pool_.stop_at(iterations); }

void Execution::check_all_ended() const {
  std::string waiting;
  for (std::uint32_t t = 0; t < compiled_.tasks.size() && waiting.size() < 500; ++t)
    for (std::uint32_t r = 0; r < compiled_.tasks[t].width && waiting.size() < 500; ++r)
      if (const auto done = started_[compiled_.instance_id({t, r})]; !pool_.stealing() && done < pool_.limit())
        waiting +=
            fmt::format("\n  '{}' of rank {} waits to start iteration {}", compiled_.task(t).label.text(), r, done + 1);
  if (!waiting.empty()) throw SimulationError("deadlock: nothing can happen any more, but" + waiting);
}

/// Interchangeable ranks have the same cycles: one of them is enough.
bool Execution::bound_from_one_rank() const {
  return !compiled_.folded && network_.ranks_interchangeable() && options_.slowdown.empty();
}

std::vector<ServiceCount> Execution::service_counts() const {
  std::vector<ServiceCount> counts;
  for (std::uint32_t t = 0; t < compiled_.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < (bound_from_one_rank() ? 1 : compiled_.tasks[t].width); ++r) {
      counts.push_back({.task = t, .rank = r, .begun = started_[compiled_.instance_id({t, r})]});
      if (compiled_.tasks[t].first_slot < 0) continue;
      const Turn& turn = turns_[first_turn_[t] + r];
      counts.back().begun -= turn.waits ? 1 : 0;
      counts.back().order = turn.order;
    }
  return counts;
}

CycleBound Execution::bound() const {
  const bool one_rank = bound_from_one_rank();
  const CompiledGraph folded = one_rank ? compile(graph_, true) : CompiledGraph{};
  const CompiledGraph& used = one_rank ? folded : compiled_;
  std::vector<ServiceCount> counts = used.slot_discipline.empty() ? std::vector<ServiceCount>{} : steady_;
  for (ServiceCount& c : counts)
    if (const CompiledTask& task = used.tasks[c.task]; task.first_slot >= 0)
      c.slot = task.first_slot + static_cast<std::int32_t>(task.slot_stride * c.rank);
  const auto duration = [&](Instance i) {
    return std::holds_alternative<Compute>(used.task(i.task).work) ? compute_time(i, -1)
                                                                   : network_.idle_time(i.task, i.rank);
  };
  return maximum_cycle_ratio(used, duration, counts);
}

/// Every iteration sends the same bytes over the same links.
void Execution::measure_traffic(ExecutionResult& result) const {
  const double iterations = pool_.iterations();
  result.metrics.bytes = traffic_.total() / iterations;
  for (std::size_t link = 0; result.iteration > 0 && link < traffic_.on_link().size(); ++link) {
    const double rate = traffic_.on_link()[link] / iterations / result.iteration;
    double utilization = rate / engine_.link_bandwidth(static_cast<int>(link));
    if (!period_) utilization = std::min(utilization, 1.0);  // an estimated iteration may come out too short
    if (utilization <= result.metrics.max_link_utilization) continue;
    result.metrics.max_link_utilization = utilization;
    result.metrics.busiest_link = engine_.link_name(static_cast<int>(link));
  }
}

std::vector<WorkerReport> Execution::report_workers() const {
  std::uint32_t ranks = 1;
  for (const CompiledTask& task : compiled_.tasks) ranks = std::max(ranks, task.width);
  std::vector<WorkerReport> workers;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    WorkerReport report{.steps = std::numeric_limits<std::int64_t>::max()};
    for (std::uint32_t t = static_cast<std::uint32_t>(compiled_.tasks.size()); t-- > 0;) {
      if (compiled_.tasks[t].width != ranks) continue;
      const std::uint64_t id = compiled_.instance_id({t, r});
      report.device = compiled_.device({t, r});
      report.steps = std::min<std::int64_t>(report.steps, started_[id]);
      report.ended = std::max(report.ended, ended_[id] - start_);
    }
    report.skipped = obsolete_.skipped(r);
    report.steps -= report.skipped;
    report.dropped = dropped_[r];
    workers.push_back(report);
  }
  return workers;
}

ExecutionResult Execution::run() {
  engine_.set_listener(*this);
  for (std::uint32_t t = 0; t < compiled_.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < compiled_.tasks[t].width; ++r)
      if (readiness_.ready({t, r}) && started_[compiled_.instance_id({t, r})] == 0) offer({t, r});
  finish_instant();
  engine_.run();
  check_all_ended();

  ExecutionResult result;
  const double makespan = engine_.now() - start_;
  const double missing = static_cast<double>(options_.iterations) - pool_.iterations();
  result.iterations_simulated = std::llround(pool_.iterations());
  result.period = period_;
  result.folded = compiled_.folded;
  if (period_) {
    result.iteration = period_->iteration();
    result.metrics = metrics_;
  } else {
    const auto [mean, ci95] = observer_.mean_iteration();
    result.iteration = mean > 0 ? mean : makespan / pool_.iterations();
    result.iteration_ci95 = ci95;
    const std::int64_t window = observer_.longest_window();
    if (window > 0) result.metrics = observer_.window(window);
  }
  measure_traffic(result);
  result.exact = missing == 0 || period_.has_value();
  result.total = makespan + missing * result.iteration;
  result.metrics.mean_staleness = versions_.mean();
  result.metrics.max_staleness = versions_.max();

  result.totals.makespan = makespan;
  for (std::size_t d = 0; d < cluster_.devices.size(); ++d)
    result.totals.activity.push_back(activity_.times(static_cast<DeviceId>(d), engine_.now()));
  result.totals.sent = traffic_.sent();
  result.totals.received = traffic_.received();
  result.totals.on_link = traffic_.on_link();
  result.workers = report_workers();
  if (options_.noise.compute_cv <= 0 && !pool_.stealing() && !has_quorum(graph_)) result.bound = bound();
  result.timeline = std::move(timeline_);
  return result;
}

}  // namespace

ExecutionResult execute(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine,
                        const ExecutionOptions& options) {
  graph.validate(cluster);
  if (options.shards == Shards::stealing && !graph.ranks_are_independent())
    throw GraphError("ranks that wait for each other cannot take steps from a common pool");
  const NetworkPlan network(graph, cluster, engine);
  const bool symmetric = options.noise.compute_cv <= 0 &&
                         std::all_of(options.slowdown.begin(), options.slowdown.end(), [](double s) { return s == 1; });
  const bool folded = options.fold && symmetric && options.shards == Shards::fixed && network.ranks_interchangeable();
  return Execution(graph, cluster, engine, network, options, folded).run();
}

}  // namespace epocast
