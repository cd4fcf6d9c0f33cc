#include "sim/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "sim/barrier_accounts.hpp"
#include "sim/collectives/runner.hpp"
#include "sim/compiled_graph.hpp"
#include "sim/cycle_bound.hpp"
#include "sim/deadlock.hpp"
#include "sim/disturbed_links.hpp"
#include "sim/durations.hpp"
#include "sim/error.hpp"
#include "sim/fusion.hpp"
#include "sim/network_plan.hpp"
#include "sim/obsolescence.hpp"
#include "sim/queue_slots.hpp"
#include "sim/readiness.hpp"
#include "sim/result_check.hpp"
#include "sim/service_order.hpp"
#include "sim/staleness.hpp"
#include "sim/step_observer.hpp"
#include "sim/step_pool.hpp"
#include "sim/task_activity.hpp"
#include "sim/traffic.hpp"
#include "sim/worker_report.hpp"

namespace epocast {
namespace {

template <class Id>
constexpr std::size_t idx(Id id) {
  return static_cast<std::size_t>(id);
}

constexpr std::int64_t kFewestForEstimate = 100;  // iterations, where no noise tells how sure an estimate is

// Upper 16 bits of an engine token: whose event it is.
enum Tag : std::uint16_t { kTaskTimer, kTaskFlow, kCollectiveTimer, kCollectiveFlow, kFusionTimer };

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
  std::uint64_t order(std::uint64_t token, bool is_flow) const override;

  void start_work(Instance i);
  void call_fusion(Instance i) { engine_.start_timer(engine_.now(), pack(kFusionTimer, i)); }
  void start_fused(Instance i);
  void offer(Instance i);
  void begin(Instance i);
  void note_beginning(Instance i);
  void finish(Instance i);
  void finish_instant();
  void finish_collective(std::uint64_t id);
  void observe(Instance i, std::int64_t iteration, bool happened);
  bool sample_is_large_enough(std::int64_t iterations) const;
  void iteration_ended(std::int64_t completed);
  bool is_obsolete(Instance i);
  WorkerSources worker_sources() const;
  void check_all_ended() const;
  std::int64_t iteration_of(Instance i) const { return std::int64_t{state(i).started} - 1; }
  InstanceState& state(Instance i) { return states_[compiled_.instance_id(i)]; }
  const InstanceState& state(Instance i) const { return states_[compiled_.instance_id(i)]; }
  std::vector<std::uint32_t> started() const;
  double iterations_done() const;
  void measure_pace(ExecutionResult& result) const;
  void measure_traffic(ExecutionResult& result) const;
  std::vector<ServerReport> report_servers(double makespan) const;
  bool bound_from_one_rank() const;
  CycleBound bound() const;

  const CyclicTaskGraph& graph_;
  const Cluster& cluster_;
  SimEngine& engine_;
  const NetworkPlan& network_;
  const ExecutionOptions& options_;
  CompiledGraph compiled_;
  Readiness readiness_;
  QueueSlots slots_;
  FusionQueues fusion_;
  TrafficCounter traffic_;
  CollectiveRunner collectives_;
  TaskActivity activity_;
  VersionCounter versions_;
  SteadyStateDetector detector_;
  StepObserver observer_;
  ServiceOrder service_order_;
  Durations durations_;
  std::optional<BarrierAccounts> barriers_;
  std::optional<DisturbedLinks> disturbed_links_;

  double start_;
  StepPool pool_;
  VoidIterations obsolete_;
  std::int64_t max_started_ = 0;
  std::vector<InstanceState> states_;  ///< by instance
  std::vector<std::int64_t> dropped_;  ///< by rank
  struct Service {
    double busy = 0;  ///< s
    std::int64_t served = 0;
  };
  std::vector<Service> services_;     ///< by queue
  std::vector<StuckInstance> stuck_;  ///< on devices that stand still for ever
  std::int64_t executions_ = 0;       ///< ended
  std::int64_t calm_at_ = 0;          ///< iterations that had ended, or begun, when nothing changed any more
  bool calm_ = true;
  // When the period was found, if it is 1: how far all had come, and how long what is fused takes, by task.
  std::vector<ServiceCount> steady_;
  std::vector<double> steady_fused_;
  std::deque<Instance> instant_;  ///< ended at once, still to be finished
  std::optional<Period> period_;
  bool running_down_ = false;  ///< some instance has ended its last iteration
  StepMetrics metrics_;
  Timeline timeline_;
};

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
      fusion_(compiled_, network),
      traffic_(engine),
      collectives_(engine, traffic_, kCollectiveTimer, kCollectiveFlow, folded),
      activity_(compiled_, cluster.devices.size(), engine.now()),
      versions_(graph),
      detector_(compiled_.instances, compiled_.max_lag),
      observer_(activity_.accounts(), activity_.workers(cluster.devices.size()), engine.now()),
      service_order_(compiled_),
      durations_(compiled_, options, cluster.devices.size(), engine.now()),
      start_(engine.now()),
      pool_(compiled_, options),
      obsolete_(compiled_),
      states_(compiled_.instances, InstanceState{.ended = engine.now()}),
      dropped_(max_ranks(graph), 0),
      services_(graph.queues().size()),
      calm_(durations_.calm(engine.now())) {
  if (options.record_waiting && !folded) barriers_.emplace(compiled_, start_);
  if (!options.slow_links.empty())
    disturbed_links_.emplace(engine, options.slow_links, network.device_hosts(), options.elapsed);
  const bool lone_links = options.share_single_links && options.slow_links.empty();
  engine.declare_flows(lone_links ? network.flows() : std::vector<std::pair<int, int>>{});
}

// The life of an instance: offered when its tokens are there, in line on its queue, begun, finished.

void Execution::offer(Instance i) {
  InstanceState& own = state(i);
  if (!pool_.may_start(i, own.started)) return;
  readiness_.fire(i);
  max_started_ = std::max<std::int64_t>(max_started_, ++own.started);
  if (barriers_) barriers_->starts(i, engine_.now());
  own.firing = is_obsolete(i) ? Firing::void_outside_queue : Firing::real;
  if (own.firing != Firing::real) {
    instant_.push_back(i);
  } else if (fusion_.serves(i)) {
    if (fusion_.enter(i, own.started)) call_fusion(i);
  } else if (slots_.waits_for_slot(i)) {
    service_order_.waits(i);
    slots_.enter(i, own.started, [this](Instance next) { begin(next); });
  } else {
    begin(i);
  }
}

/// Whether the instance, whose turn has come, is obsolete.
bool Execution::is_obsolete(Instance i) {
  if (!obsolete_.any()) return false;
  const auto started = [this](std::uint32_t join) {
    return std::int64_t{states_[compiled_.tasks[join].first_instance].started};
  };
  return obsolete_.check(i, iteration_of(i), started);
}

void Execution::begin(Instance i) {
  if (slots_.waits_for_slot(i)) {
    service_order_.begins(i);
    if (is_obsolete(i)) {
      state(i).firing = Firing::void_in_queue;
      instant_.push_back(i);
      return;
    }
  }
  note_beginning(i);
  start_work(i);
}

void Execution::note_beginning(Instance i) {
  const Task& task = compiled_.task(i.task);
  state(i).began = engine_.now();
  activity_.begins(i, engine_.now());
  if (task.version.store != StoreId::none && task.version.kind == VersionEffect::read_at_start)
    versions_.read(task.version.store, i.rank, iteration_of(i));
}

/// All that waits with the instance and fits begins as one, under the name of the first.
void Execution::start_fused(Instance i) {
  const auto [members, plan] = fusion_.start(i);
  for (const Instance member : members) note_beginning(member);
  const std::uint32_t first = members.front().task;
  collectives_.start(*plan, network_.hosts(compiled_.task(first).ranks), first);
}

void Execution::start_work(Instance i) {
  const Task& task = compiled_.task(i.task);
  const double now = engine_.now();
  if (std::holds_alternative<Collective>(task.work)) {
    collectives_.start(network_.collective(i.task), network_.hosts(task.ranks), i.task);
    return;
  }
  double date = now;
  bool at_once = false;
  if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
    const auto [from, to] = network_.ends(*transfer, i.rank);
    at_once = from == to;
    if (!at_once) date = durations_.start_of_transfer(i, now) + engine_.route(from, to).latency;
  } else {
    date = durations_.end_of_compute(i, iteration_of(i), now);
    at_once = date == now;
  }
  if (at_once) {
    instant_.push_back(i);
  } else if (std::isfinite(date)) {
    engine_.start_timer(date, pack(kTaskTimer, i));
  } else {
    const DeviceId still = std::holds_alternative<Transfer>(task.work) ? compiled_.device(i) : durations_.worker(i);
    stuck_.push_back({i, still, durations_.stopped(still)});
  }
}

/// Events of one date: by task, then by rank or, in a collective, by message. So rounding has no say in who goes first.
std::uint64_t Execution::order(std::uint64_t token, bool /*is_flow*/) const {
  if (const auto tag = token >> 48; tag == kCollectiveTimer || tag == kCollectiveFlow)
    return collectives_.id_of(token) << 40 | CollectiveRunner::message_of(token);
  else if (tag == kFusionTimer)
    return ~std::uint64_t{0};  // after all that may add to it
  const Instance i = unpack(token);
  return std::uint64_t{i.task} << 40 | i.rank;
}

void Execution::on_timer(std::uint64_t token) {
  if (token >> 48 == kCollectiveTimer) {
    finish_collective(collectives_.on_timer(token));
  } else if (token >> 48 == kFusionTimer) {
    start_fused(unpack(token));
  } else {
    const Instance i = unpack(token);
    if (const auto* transfer = std::get_if<Transfer>(&compiled_.task(i.task).work)) {
      const auto [from, to] = network_.ends(*transfer, i.rank);
      const double bytes = durations_.effective_bytes(i, iteration_of(i), transfer->bytes);
      engine_.start_flow(from, to, bytes, pack(kTaskFlow, i));
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
  if (id == CollectiveRunner::kNone) return;
  const Instance i{static_cast<std::uint32_t>(id), 0};
  if (!fusion_.serves(i)) return finish(i);
  bool again = false;
  const std::vector<Instance> members = fusion_.end(i, again);
  if (again) call_fusion(i);
  for (const Instance member : members) finish(member);
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
  InstanceState& own = state(i);
  const std::int64_t iteration = iteration_of(i);
  const Firing firing = std::exchange(own.firing, Firing::none);
  own.ended = engine_.now();
  if (firing == Firing::real) {
    activity_.ends(i, own.ended);
    if (task.version.store != StoreId::none && task.version.kind == VersionEffect::write_at_end)
      versions_.write(task.version.store, i.rank, iteration, iteration > 0 || options_.iterations == 1);
    if (task.queue != QueueId::none && graph_.queue(task.queue).role == QueueRole::server) {
      Service& service = services_[idx(task.queue)];
      service.busy += own.ended - own.began;
      ++service.served;
    }
  }
  observe(i, iteration, firing == Firing::real);
  if (barriers_) barriers_->ends(i, own.ended);  // before what this sets off
  readiness_.finish(
      i, [this](Instance next) { offer(next); },
      [&](std::uint32_t) { dropped_[i.rank] += obsolete_.skipped(i, iteration) ? 0 : 1; });
  if (slots_.waits_for_slot(i) && firing != Firing::void_outside_queue)
    slots_.leave(i, [this](Instance next) { begin(next); });
}

void Execution::observe(Instance i, std::int64_t iteration, bool happened) {
  const std::uint64_t id = compiled_.instance_id(i);
  const double now = engine_.now();
  if (options_.record_timeline && happened) {
    if (timeline_.intervals.size() < options_.max_intervals)
      timeline_.intervals.push_back({i.task, i.rank, iteration, state(i).began - start_, now - start_});
    else
      timeline_.truncated = true;
  }
  if (!options_.exact && !stuck_.empty() && ++executions_ >= options_.patience && max_started_ >= kFewestForEstimate)
    pool_.stop_at(max_started_);  // no iteration is complete any more, but the others' pace is known
  if (pool_.stealing()) {
    if (!pool_.iteration_ended(i, iteration)) return;
    iteration_ended(pool_.completed());
    if (!options_.exact && sample_is_large_enough(pool_.completed())) pool_.stop_at(pool_.completed());
    return;
  }
  running_down_ |= iteration + 1 >= pool_.limit();
  if (!detector_.record(id, iteration, now)) return;

  iteration_ended(detector_.completed());
  if (period_ || running_down_) return;  // what the last ones do when others are done is no steady state
  if (!calm_ && durations_.calm(now)) {
    calm_ = true;
    calm_at_ = max_started_;
    detector_.forget_before(max_started_);
  }
  if (!options_.noise.any() && calm_) period_ = detector_.find_period();
  if (period_) {
    if (period_->length == 1) {
      steady_ = service_order_.counts(started(), bound_from_one_rank());
      steady_fused_ = fusion_.idle_times();
    }
    metrics_ = observer_.window(period_->length);
    // Nothing has started beyond max_started_ yet, so ending there changes nothing that has happened; whole periods
    // between there and the real end can be added by arithmetic.
    const std::int64_t missing = std::max<std::int64_t>(0, options_.iterations - max_started_);
    if (!options_.exact) pool_.stop_at(options_.iterations - missing / period_->length * period_->length);
  } else if (!options_.exact && sample_is_large_enough(detector_.completed() - calm_at_)) {
    pool_.stop_at(max_started_);
  }
}

void Execution::iteration_ended(std::int64_t completed) {
  observer_.iteration_ended(engine_.now());
  if (!options_.progress) return;
  // An upper limit: without noise a period may be found at any time.
  const std::int64_t sample = options_.noise.any() ? options_.sample_iterations
                                                   : options_.patience / static_cast<std::int64_t>(compiled_.instances);
  const std::int64_t all =
      options_.exact ? options_.iterations : std::min(options_.iterations, std::max(kFewestForEstimate, sample));
  options_.progress(std::min(1.0, static_cast<double>(completed) / static_cast<double>(all)));
}

/// Whether enough iterations are simulated for an estimate: with noise a fixed number; without, when patience is over.
bool Execution::sample_is_large_enough(std::int64_t iterations) const {
  if (!durations_.representative(engine_.now())) return false;
  if (options_.noise.any()) return iterations >= options_.sample_iterations;
  return iterations >= kFewestForEstimate &&
         iterations * static_cast<std::int64_t>(compiled_.instances) >= options_.patience;
}

std::vector<std::uint32_t> Execution::started() const {
  std::vector<std::uint32_t> firings;
  for (const InstanceState& s : states_) firings.push_back(s.started);
  return firings;
}

void Execution::check_all_ended() const {
  std::vector<double> ended;
  for (const InstanceState& s : states_) ended.push_back(s.ended - start_);
  const std::string deadlock = describe_deadlock({compiled_, cluster_, readiness_, started(), ended, stuck_,
                                                  pool_.stealing() ? 0 : pool_.limit(), engine_.now() - start_});
  if (!deadlock.empty()) throw SimulationError(deadlock);
}

/// Interchangeable ranks have the same cycles: one of them is enough.
bool Execution::bound_from_one_rank() const {
  return !compiled_.folded && network_.ranks_interchangeable() && options_.slowdown.empty();
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
    if (std::holds_alternative<Compute>(used.task(i.task).work)) return durations_.usual(i);
    const bool fused = fusion_.serves(i) && !steady_fused_.empty();  // the same run together in every iteration
    return fused ? steady_fused_[i.task] : network_.idle_time(i.task, i.rank);
  };
  return maximum_cycle_ratio(used, duration, counts);
}

/// What was simulated, in iterations of all workers.
double Execution::iterations_done() const {
  if (stuck_.empty()) return pool_.iterations();
  double steps = 0;
  const std::vector<WorkerReport> workers = report_workers(worker_sources());
  for (const WorkerReport& worker : workers) steps += static_cast<double>(worker.steps);
  return std::max(steps, 1.0) / static_cast<double>(workers.size());
}

/// Times per iteration: of the period, or averages over what comes after the first tenth and the last change.
void Execution::measure_pace(ExecutionResult& result) const {
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
    result.metrics = observer_.window(window);
  }
}

/// Every iteration sends the same bytes over the same links.
void Execution::measure_traffic(ExecutionResult& result) const {
  const double iterations = iterations_done();
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

WorkerSources Execution::worker_sources() const {
  return {compiled_, states_, obsolete_, dropped_, versions_, barriers_, stuck_, start_};
}

std::vector<ServerReport> Execution::report_servers(double makespan) const {
  std::vector<ServerReport> servers;
  for (std::size_t q = 0; q < services_.size(); ++q) {
    const Queue& queue = graph_.queues()[q];
    if (queue.role != QueueRole::server || makespan <= 0) continue;
    const std::size_t devices = compiled_.folded ? 1 : graph_.group(queue.group).devices.size();
    servers.push_back({queue.name, services_[q].busy / makespan / static_cast<double>(devices), services_[q].served});
  }
  return servers;
}

ExecutionResult Execution::run() {
  engine_.set_listener(*this);
  for (std::uint32_t t = 0; t < compiled_.tasks.size(); ++t)
    for (std::uint32_t r = 0; r < compiled_.tasks[t].width; ++r)
      if (readiness_.ready({t, r}) && state({t, r}).started == 0) offer({t, r});
  finish_instant();
  engine_.run();
  check_all_ended();

  ExecutionResult result;
  const double makespan = engine_.now() - start_;
  const double missing = static_cast<double>(options_.iterations) - pool_.iterations();
  result.iterations_simulated = std::llround(pool_.iterations());
  result.period = period_;
  result.folded = compiled_.folded;
  result.totals.makespan = makespan;
  measure_pace(result);
  measure_traffic(result);
  result.exact = missing == 0 || period_.has_value();
  result.total = makespan + missing * (stuck_.empty() ? result.iteration : makespan / pool_.iterations());
  result.staleness = versions_.all();
  result.metrics.mean_staleness = result.staleness.mean();
  if (result.staleness.writes > 0) result.metrics.max_staleness = result.staleness.max;

  for (std::size_t d = 0; d < cluster_.devices.size(); ++d)
    result.totals.activity.push_back(activity_.accounts().times(static_cast<DeviceId>(d), engine_.now()));
  result.totals.sent = traffic_.sent();
  result.totals.received = traffic_.received();
  result.totals.on_link = traffic_.on_link();
  result.workers = report_workers(worker_sources());
  result.servers = report_servers(makespan);
  const bool always_the_same = !options_.noise.any() && options_.slow_devices.empty() && options_.slow_links.empty();
  if (always_the_same && !pool_.stealing() && !readiness_.has_quorums()) result.bound = bound();
  result.algorithms = network_.algorithms();
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
  const bool symmetric = !options.noise.any() && options.slow_devices.empty() && options.slow_links.empty() &&
                         std::all_of(options.slowdown.begin(), options.slowdown.end(), [](double s) { return s == 1; });
  const bool folded = options.fold && symmetric && options.shards == Shards::fixed && network.ranks_interchangeable();
  ExecutionResult result = Execution(graph, cluster, engine, network, options, folded).run();
  result.doubts = doubts_about(result, network.overlooks_traffic());
  result.exact = result.exact && result.doubts.empty();
  return result;
}

}  // namespace epocast
