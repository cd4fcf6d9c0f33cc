#include "sim/graph_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace epocast {
namespace {

constexpr std::int64_t kFewestForEstimate = 100;  // iterations, where no noise tells how sure an estimate is

// Upper 16 bits of an engine token: whose event it is.
enum Tag : std::uint16_t {
  kTaskTimer,
  kTaskFlow,
  kCollectiveTimer,
  kCollectiveFlow,
  kFusionTimer,
  kLaunchTimer,
  kCopyTimer,
  kProcessorTimer  // of a device, in the place of the rank
};

std::uint64_t pack_instance(Instance i) { return std::uint64_t{i.task} << 24 | i.rank; }
std::uint64_t pack(Tag tag, Instance i) { return std::uint64_t{tag} << 48 | pack_instance(i); }
Instance unpack(std::uint64_t token) {
  return {static_cast<std::uint32_t>(token >> 24 & 0xffffff), static_cast<std::uint32_t>(token & 0xffffff)};
}

std::size_t max_ranks(const CyclicTaskGraph& graph) {
  std::size_t most = 1;
  for (const Group& group : graph.groups()) most = std::max(most, group.devices.size());
  return most;
}

std::vector<bool> devices_that_compute(const CyclicTaskGraph& graph, std::size_t devices) {
  std::vector<bool> out(devices, false);
  for (const Queue& queue : graph.queues())
    if (queue.role == QueueRole::compute)
      for (const DeviceId device : graph.group(queue.group).devices) out[static_cast<std::size_t>(device)] = true;
  return out;
}

}  // namespace

GraphRun::GraphRun(const CyclicTaskGraph& graph, const Cluster& cluster, SimEngine& engine, const NetworkPlan& network,
                   const ExecutionOptions& options, bool folded)
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
      collectives_(engine, traffic_, kCollectiveTimer, kCollectiveFlow, folded ? &network.symmetry() : nullptr),
      activity_(compiled_, cluster.devices.size(), engine.now()),
      versions_(graph),
      timed_(compiled_, options),
      detector_(options.noise.any() ? SteadyStateDetector(timed_.count(), compiled_.max_lag, 0)
                                    : SteadyStateDetector(timed_.count(), compiled_.max_lag)),
      observer_(activity_.accounts(), activity_.workers(cluster.devices.size()), engine.now()),
      service_order_(compiled_),
      durations_(compiled_, options, cluster.devices.size(), engine.now()),
      computing_(devices_that_compute(graph, cluster.devices.size())),
      interference_(compiled_, durations_, options.costs.slows_computation(), cluster.devices.size()),
      start_(engine.now()),
      last_end_(engine.now()),
      pool_(compiled_, options),
      obsolete_(compiled_),
      states_(compiled_.instances, InstanceState{.ended = engine.now()}),
      dropped_(max_ranks(graph), 0),
      servers_(compiled_),
      calm_(durations_.calm(engine.now())) {
  if (options.record_ends && options.shortened != nullptr && folded)
    clock_.emplace(compiled_, activity_.workers(cluster.devices.size()), start_);
  if (options.record_waiting && !folded) barriers_.emplace(compiled_, start_);
  if (options.record_traffic) traffic_.record_pairs();
  if (!options.slow_links.empty())
    disturbed_links_.emplace(engine, options.slow_links, cluster, network.device_hosts(), options.elapsed);
  const bool lone_links = options.share_single_links && options.slow_links.empty();
  engine.declare_flows(lone_links && !folded ? network.flows() : std::vector<std::pair<int, int>>{});
  engine.declare_flow_classes(folded ? network.symmetry().classes() : FlowClasses{});
}

// The life of an instance: offered when its tokens are there, in line on its queue, begun, finished.

void GraphRun::offer(Instance i) {
  InstanceState& own = state(i);
  if (!pool_.may_start(i, own.started)) return;
  readiness_.fire(i);
  ++own.started;
  if (timed_.contains(i)) max_started_ = std::max<std::int64_t>(max_started_, own.started);
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
bool GraphRun::is_obsolete(Instance i) {
  if (!obsolete_.any()) return false;
  const auto started = [this](std::uint32_t join) {
    return std::int64_t{states_[compiled_.tasks[join].first_instance].started};
  };
  return obsolete_.check(i, iteration_of(i), started);
}

void GraphRun::begin(Instance i) {
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

void GraphRun::note_beginning(Instance i) {
  const Task& task = compiled_.task(i.task);
  state(i).began = engine_.now();
  activity_.begins(i, engine_.now());
  if (options_.intervals != nullptr) options_.intervals->begins(i.task, engine_.now() - start_);
  if (std::holds_alternative<Transfer>(task.work)) note_communication(i, true);
  if (task.version.store != StoreId::none && task.version.kind == VersionEffect::read_at_start)
    versions_.read(task.version.store, compiled_.first_rank(i), iteration_of(i));
}

/// All that waits with the instance and fits begins as one, under the name of the first.
void GraphRun::start_fused(Instance i) {
  const auto [members, plan] = fusion_.start(i);
  for (const Instance member : members) note_beginning(member);
  double bytes = 0;
  for (const Instance member : members) bytes += std::get<Collective>(compiled_.task(member.task).work).bytes.value;
  start_collective(members.front(), {.fused = members, .plan = plan}, bytes);
}

/// A collective's plan for so many bytes, after the time that software takes before its first message. Computation
/// loses nothing to the first part of it, waiting for members that stand still and the launch.
void GraphRun::start_collective(Instance i, StartingCollective starting, double bytes) {
  const bool is_measured = std::get<Collective>(compiled_.task(i.task).work).measured.has_value();
  const Durations::Departure departure = durations_.departure(i, engine_.now());
  if (std::isinf(departure.date)) {
    stuck_.push_back({i, departure.held_by, durations_.stopped(departure.held_by)});
    return;
  }
  const double launch = departure.date - engine_.now() + (is_measured ? 0 : options_.costs.overhead);
  starting.copying = is_measured ? 0 : options_.costs.copy_time * bytes + processor_wait(i);
  if (launch > 0 && options_.costs.slows_computation()) {
    starting_[pack_instance(i)] = starting;
    engine_.start_timer(engine_.now() + launch, pack(kLaunchTimer, i));
    return;
  }
  starting.copying += launch;
  copy_for_collective(i, starting);
}

void GraphRun::copy_for_collective(Instance i, const StartingCollective& starting) {
  if (starting.fused.empty()) note_communication(i, true);
  for (const Instance member : starting.fused) note_communication(member, true);
  if (starting.copying == 0) return send_collective(i, starting);
  starting_[pack_instance(i)] = starting;
  engine_.start_timer(engine_.now() + starting.copying, pack(kCopyTimer, i));
}

void GraphRun::send_collective(Instance i, const StartingCollective& starting) {
  collectives_.start(*starting.plan, network_.team_hosts(i.task, i.rank), pack_instance(i));
}

/// s that software takes before the first message; contained in times that were measured.
double GraphRun::overhead(const Collective& collective, double bytes) const {
  return collective.measured ? 0 : options_.costs.overhead + options_.costs.copy_time * bytes;
}

/// s that a device's processors work for a communication, on what it sends and receives.
double GraphRun::processor_work(Instance i) const {
  const Task& task = compiled_.task(i.task);
  double bytes = 0;
  if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
    bytes = transfer->bytes.value;
  } else {
    const auto& collective = std::get<Collective>(task.work);
    const double passes = collective.op == CollectiveOp::all_reduce ? 2 : 1;
    bytes = 2 * passes * (1 - 1.0 / compiled_.graph->ranks_of(static_cast<TaskId>(i.task))) * collective.bytes.value;
  }
  return options_.costs.processor_time * bytes;
}

/// Whether kernels of the devices move the bytes: all but messages to and from the memory of a node's processors, which
/// copy engines move. In such memory is also what servers hold on hosts that train nothing.
bool GraphRun::takes_kernels(Instance i) const {
  const auto* transfer = std::get_if<Transfer>(&compiled_.task(i.task).work);
  if (transfer == nullptr) return true;
  const auto [from, to] = network_.ends(*transfer, i.rank);
  const auto trains = [&](DeviceId device) {
    return cluster_.devices[static_cast<std::size_t>(device)].trains && computing_[static_cast<std::size_t>(device)];
  };
  return trains(from) && trains(to);
}

/// What a communication takes of its devices from computation.
CommunicationLoad GraphRun::load_of(Instance i) const {
  const double kernels = takes_kernels(i) ? options_.costs.interference : 0;
  if (options_.costs.processor_time == 0) return {.kernels = kernels};
  const double time = network_.idle_time(i.task, i.rank), work = processor_work(i);
  if (!(time > 0)) return {};
  return {kernels, std::min(Interference::kMost, work / time), work};
}

/// s that a communication takes longer than its links need, as the processors move its bytes no faster.
double GraphRun::processor_wait(Instance i) const {
  if (options_.costs.processor_time == 0) return 0;
  const double time = network_.idle_time(i.task, i.rank);
  return time > 0 ? std::max(0.0, processor_work(i) / Interference::kMost - time) : 0;
}

/// Computations on the devices of a communication that begins or ends change their pace.
void GraphRun::note_communication(Instance i, bool begins) {
  if (!options_.costs.slows_computation()) return;
  interference_.communicates(
      i, load_of(i), begins, engine_.now(), [this](Instance computation, double date) { move(computation, date); },
      [this](DeviceId device, double date) { settle(device, date); });
}

/// A computation ends at another date.
void GraphRun::move(Instance computation, double date) { engine_.start_timer(date, pack(kTaskTimer, computation)); }

/// A device's processors will have done what they have to do for a message.
void GraphRun::settle(DeviceId device, double date) {
  engine_.start_timer(date, pack(kProcessorTimer, {0, static_cast<std::uint32_t>(device)}));
}

void GraphRun::call_fusion(Instance i) { engine_.start_timer(engine_.now(), pack(kFusionTimer, i)); }

void GraphRun::start_work(Instance i) {
  const Task& task = compiled_.task(i.task);
  const double now = engine_.now();
  if (std::holds_alternative<Collective>(task.work)) {
    start_collective(i, {.plan = &network_.collective(i.task, i.rank)}, std::get<Collective>(task.work).bytes.value);
    return;
  }
  double date = now;
  DeviceId still{};  // if the date never comes
  bool at_once = false;
  if (const auto* transfer = std::get_if<Transfer>(&task.work)) {
    const auto [from, to] = network_.ends(*transfer, i.rank);
    at_once = from == to;
    if (!at_once) {
      const Durations::Departure departure = durations_.departure(i, now);
      date = departure.date + network_.delay(*transfer, from, to) + processor_wait(i);
      still = departure.held_by;
    }
  } else {
    const double work = durations_.work(i, iteration_of(i));
    still = durations_.worker(i);
    date = durations_.end_of(i, now, work);
    at_once = date == now;
    if (!at_once && std::isfinite(date) && interference_.slows(i)) {
      const double due = interference_.begins(i, work, now);
      if (std::isfinite(due)) engine_.start_timer(due, pack(kTaskTimer, i));
      return;  // or else it ends if it is slowed down no longer
    }
  }
  if (at_once) {
    instant_.push_back(i);
  } else if (std::isfinite(date)) {
    engine_.start_timer(date, pack(kTaskTimer, i));
  } else {
    stuck_.push_back({i, still, durations_.stopped(still)});
  }
}

/// Events of one date: by task, then by rank or, in a collective, by team and message. So rounding has no say in who
/// goes first.
std::uint64_t GraphRun::order(std::uint64_t token, bool /*is_flow*/) const {
  const auto tag = token >> 48;
  if (tag == kCollectiveTimer || tag == kCollectiveFlow) {
    const Instance i = unpack(collectives_.id_of(token));
    return std::uint64_t{i.task} << 40 | std::uint64_t{i.rank} << 24 | CollectiveRunner::message_of(token);
  }
  if (tag == kFusionTimer) return ~std::uint64_t{0};  // after all that may add to it
  const Instance i = unpack(token);
  return std::uint64_t{i.task} << 40 | i.rank;
}

void GraphRun::on_timer(std::uint64_t token) {
  if (pace_is_known_) throw PaceIsKnown();
  if (token >> 48 == kCollectiveTimer) {
    finish_collective(collectives_.on_timer(token));
  } else if (token >> 48 == kFusionTimer) {
    start_fused(unpack(token));
  } else if (token >> 48 == kProcessorTimer) {
    interference_.pays(
        static_cast<DeviceId>(unpack(token).rank), engine_.now(),
        [this](Instance computation, double date) { move(computation, date); },
        [this](DeviceId device, double date) { settle(device, date); });
  } else if (token >> 48 == kLaunchTimer || token >> 48 == kCopyTimer) {
    const Instance i = unpack(token);
    const StartingCollective starting = starting_.extract(pack_instance(i)).mapped();
    token >> 48 == kLaunchTimer ? copy_for_collective(i, starting) : send_collective(i, starting);
  } else {
    const Instance i = unpack(token);
    if (const auto* transfer = std::get_if<Transfer>(&compiled_.task(i.task).work)) {
      const auto [from, to] = network_.ends(*transfer, i.rank);
      const double bytes = durations_.effective_bytes(i, iteration_of(i), transfer->bytes);
      if (compiled_.folded)
        engine_.start_class_flow(network_.symmetry().parts(network_.transfer_set(i.task)).front().flow_class, bytes,
                                 pack(kTaskFlow, i));
      else
        engine_.start_flow(from, to, bytes, pack(kTaskFlow, i));
    } else if (!interference_.slows(i) || interference_.ends(i, engine_.now())) {
      finish(i);
    }
  }
  finish_instant();
}

void GraphRun::on_flow_done(std::uint64_t token) {
  if (pace_is_known_) throw PaceIsKnown();
  if (token >> 48 == kCollectiveFlow) {
    finish_collective(collectives_.on_flow_done(token));
  } else {
    const Instance i = unpack(token);
    const auto& transfer = std::get<Transfer>(compiled_.task(i.task).work);
    const auto [from, to] = network_.ends(transfer, i.rank);
    if (compiled_.folded)
      traffic_.count_set(network_.transfer_set(i.task), transfer.bytes.value);
    else
      traffic_.count(from, to, transfer.bytes.value);
    finish(i);
  }
  finish_instant();
}

void GraphRun::finish_collective(std::uint64_t id) {
  if (id == CollectiveRunner::kNone) return;
  const Instance i = unpack(id);
  if (!fusion_.serves(i)) return finish(i);
  bool again = false;
  const std::vector<Instance> members = fusion_.end(i, again);
  if (again) call_fusion(i);
  for (const Instance member : members) finish(member);
}

void GraphRun::finish_instant() {
  while (!instant_.empty()) {
    const Instance i = instant_.front();
    instant_.pop_front();
    finish(i);
  }
}

void GraphRun::finish(Instance i) {
  const Task& task = compiled_.task(i.task);
  InstanceState& own = state(i);
  const std::int64_t iteration = iteration_of(i);
  const Firing firing = std::exchange(own.firing, Firing::none);
  own.ended = last_end_ = engine_.now();
  if (firing == Firing::real) {
    activity_.ends(i, own.ended);
    if (!std::holds_alternative<Compute>(task.work)) note_communication(i, false);
    if (task.version.store != StoreId::none && task.version.kind == VersionEffect::write_at_end)
      versions_.write(task.version.store, compiled_.first_rank(i), iteration);
    servers_.served(task.queue, own.ended - own.began);
    if (clock_ && clock_->strikes_at(i.task)) clock_->strike(own.ended, activity_.accounts(), traffic_);
  }
  observe(i, iteration, firing == Firing::real);
  if (barriers_) barriers_->ends(i, own.ended);  // before what this sets off
  readiness_.finish(
      i, [this](Instance next) { offer(next); },
      [&](std::uint32_t) { dropped_[i.rank] += obsolete_.skipped(i, iteration) ? 0 : 1; });
  if (slots_.waits_for_slot(i) && firing != Firing::void_outside_queue)
    slots_.leave(i, [this](Instance next) { begin(next); });
}

void GraphRun::observe(Instance i, std::int64_t iteration, bool happened) {
  const double now = engine_.now();
  if (happened && (options_.record_timeline || options_.intervals != nullptr)) {
    const Interval interval{i.task, i.rank, iteration, state(i).began - start_, now - start_};
    if (options_.intervals != nullptr) options_.intervals->ends(interval);
    if (options_.record_timeline && timeline_.intervals.size() < options_.max_intervals)
      timeline_.intervals.push_back(interval);
    else if (options_.record_timeline)
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
  if (!timed_.contains(i)) return;
  running_down_ |= iteration + 1 >= pool_.limit();
  if (!detector_.record(timed_.number_of(i), iteration, now)) return;

  iteration_ended(detector_.completed());
  if (period_ || running_down_) return;  // what the last ones do when others are done is no steady state
  if (!calm_ && durations_.calm(now)) {
    calm_ = true;
    calm_at_ = max_started_;
    detector_.forget_before(max_started_);
  }
  if (!options_.noise.any() && calm_) period_ = starts_over() ? Period{1, now - start_} : detector_.find_period();
  if (period_) {
    if (period_->length == 1) {
      steady_ = service_order_.counts(started(), bound_from_one_rank());
      steady_fused_ = fusion_.idle_times();
    }
    metrics_ = observer_.window(period_->length);
    pace_is_known_ = options_.only_pace;
    // Nothing that takes time has started beyond max_started_ yet, so ending there changes nothing that has happened;
    // whole periods between there and the real end can be added by arithmetic.
    const std::int64_t missing = std::max<std::int64_t>(0, options_.iterations - max_started_);
    if (!options_.exact) pool_.stop_at(options_.iterations - missing / period_->length * period_->length);
  } else if (!options_.exact && sample_is_large_enough(detector_.completed() - calm_at_)) {
    pool_.stop_at(max_started_);
  }
}

/// Whether the first iteration has ended everywhere before anything of the next began: what is to come then depends on
/// the same tokens as the first did, and on nothing else. Whoever asks for intervals gets to see what is between two.
bool GraphRun::starts_over() const {
  const bool is_watched = options_.record_timeline || options_.intervals != nullptr;
  return !is_watched && detector_.completed() == 1 && max_started_ == 1 && calm_at_ == 0 && !obsolete_.any() &&
         !readiness_.has_quorums();
}

void GraphRun::iteration_ended(std::int64_t completed) {
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
bool GraphRun::sample_is_large_enough(std::int64_t iterations) const {
  if (!durations_.representative(engine_.now())) return false;
  if (options_.noise.any()) return iterations >= options_.sample_iterations;
  return iterations >= kFewestForEstimate &&
         iterations * static_cast<std::int64_t>(compiled_.instances) >= options_.patience;
}

}  // namespace epocast
