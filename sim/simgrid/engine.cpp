#include "sim/simgrid/engine.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "sim/class_flows.hpp"
#include "sim/cluster.hpp"
#include "sim/simgrid/channels.hpp"
#include "sim/simgrid/platform.hpp"
#include "sim/simgrid/restart.hpp"
#include "sim/simgrid/shared_link.hpp"
#include "sim/simgrid/single_bottleneck.hpp"
#include "sim/simgrid/timer_queue.hpp"

namespace epocast {

constexpr double kSmallestTolerance = 1e-12;  // s

namespace {
std::function<bool()> restart_current;  // of the engine there is, if any

/// Keeps a flag up as long as it lives.
class Running {
 public:
  explicit Running(bool& flag) : flag_(flag) {
    if (std::exchange(flag_, true)) throw std::logic_error("a run cannot simulate something else meanwhile");
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { flag_ = false; }

 private:
  bool& flag_;
};

}  // namespace

struct SimEngine::Impl final : SimGrid::Listener {
  struct Start {  // of a flow at SimGrid
    int src, dst;
    double bytes;
    std::uint64_t token;
  };
  Impl(const std::string& path, std::shared_ptr<const NetworkGraph> graph, NetworkCorrection correction);
  ~Impl() { restart_current = nullptr; }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool awake() const { return channels.has_value(); }
  void wake();
  double next_date();
  void arm();
  void disarm();
  void go_on();
  void on_timer() override;
  void on_flow_stopped() override { ++ending_flows; }
  void on_flow_done(std::size_t channel) override;
  void fire();
  void start_at_simgrid(const Start& start) { channels->start(start.src, start.dst, start.bytes, start.token); }
  void collect(double date);
  void watch(std::size_t index);
  bool restart();
  template <typename Action>
  void deliver(Action&& action);

  std::shared_ptr<const NetworkGraph> graph;
  std::optional<SimPlatform> platform;
  SimGrid* simgrid = nullptr;        // once it takes part
  std::optional<Channels> channels;  // likewise
  SimEngine::Listener* listener = nullptr;

  TimerQueue timers;
  std::vector<SharedLink> shared_links;
  std::unordered_map<std::uint64_t, std::size_t> shared_link_of;  // key: SimPlatform::pair_key()
  std::optional<ClassFlows> class_flows;
  TimerQueue shared_link_ends;  // dates at which a shared link is to be looked at; token: its index
  double background_date = std::numeric_limits<double>::infinity();
  std::function<double(double)> background;
  std::map<int, double> degraded;  // links that carry less than they should now, and how much [B/s]
  std::optional<double> armed;     // date of SimGrid's timer: the first of all these

  double clock = 0;           // [s] never behind SimGrid's; ahead of it only while SimGrid has no flow
  std::vector<Start> starts;  // of now, for when SimGrid's clock has come here

  struct Event {
    std::uint64_t order;
    std::uint64_t token;
    bool is_flow;
    bool operator<(const Event& other) const { return order < other.order; }
  };
  std::vector<Event> batch;  // what happens now
  bool firing = false;
  std::size_t ending_flows = 0;  // that SimGrid has ended, but not yet told us
  double precision_until = 0;    // [s] SimGrid's own tolerance is set for dates up to this one

  std::size_t flows_under_way = 0;  // at SimGrid, or in `starts`
  bool running = false;
  std::exception_ptr failure;
};

SimEngine::Impl::Impl(const std::string& path, std::shared_ptr<const NetworkGraph> given, NetworkCorrection correction)
    : graph(std::move(given)) {
  static bool used = false;
  if (std::exchange(used, true)) throw std::logic_error("SimEngine: only one engine can ever be made in a process");
  platform.emplace(path, graph.get(), correction);
  restart_current = [this] { return restart(); };
}

/// From here on SimGrid takes part: it has the clock while it has flows. REQUIRES: not awake().
void SimEngine::Impl::wake() {
  simgrid = &platform->simgrid();
  // The default is 1e-9. It has to exceed the rounding error of the clock in a step that more than doubles the clock,
  // or the flow that ends the step is lost (run() tells). 1e-12 is safe for steps from any date to 4000 s, and then for
  // those that do not double the clock.
  simgrid->set_precision(tolerance(precision_until));
  simgrid->listen(*this);
  channels.emplace(*platform);
  for (const auto& [link, bandwidth] : degraded) platform->set_bandwidth(link, bandwidth);
  if (clock > 0) return;  // they wait until SimGrid's clock has come so far
  for (const Start& start : std::exchange(starts, {})) start_at_simgrid(start);
}

double SimEngine::Impl::next_date() {
  double date = std::numeric_limits<double>::infinity();
  if (!timers.empty()) date = timers.next_date();
  if (!shared_link_ends.empty()) date = std::min(date, shared_link_ends.next_date());
  if (class_flows) date = std::min(date, class_flows->next_end());
  const bool idle = date == std::numeric_limits<double>::infinity() && flows_under_way == 0;
  return idle ? date : std::min(date, background_date);
}

/// Sets the SimGrid timer to the first date of the queues. SimGrid's own queue is slower and would need one per date.
void SimEngine::Impl::arm() {
  if (firing || !awake()) return;  // go_on() comes next
  const double date = starts.empty() ? next_date() : clock;
  if (armed) {
    // What is armed too early does no harm, but nothing may follow the last event.
    if (*armed <= date && date < std::numeric_limits<double>::infinity()) return;
    disarm();
  }
  if (date == std::numeric_limits<double>::infinity()) return;
  armed = date;
  simgrid->set_timer(date);
}

void SimEngine::Impl::disarm() {
  if (armed) simgrid->remove_timer();
  armed.reset();
}

/// A step of SimGrid costs more than most of what happens at a date. While it has no flow, we go on without it; it
/// catches up in one step when the next flow starts. So nothing may be armed for a date that is then past.
void SimEngine::Impl::go_on() {
  if (flows_under_way == 0) disarm();
  while (flows_under_way == 0) {
    const double date = next_date();
    if (date == std::numeric_limits<double>::infinity()) return;
    clock = std::max(clock, date);
    fire();
  }
  if (!awake()) wake();
  channels->tell_simgrid(clock, degraded);
  arm();
}

void SimEngine::Impl::on_timer() {
  armed.reset();
  clock = std::max(clock, simgrid->clock());  // which may round up what it jumps to
  for (const Start& start : starts) start_at_simgrid(start);
  starts.clear();
  if (ending_flows > 0) return;  // the last of them goes on, still at this date
  fire();
  go_on();
}

/// Collects all that is due at `date`, but for SimGrid's flows.
void SimEngine::Impl::collect(double date) {
  const double due = date + tolerance(date);
  while (!timers.empty() && timers.next_date() <= due)
    timers.pop_bucket([&](std::uint64_t token) { batch.push_back({listener->order(token, false), token, false}); });
  if (class_flows)
    class_flows->end_flows(date, due - date, [&](std::uint64_t token) {
      batch.push_back({listener->order(token, true), token, true});
    });
  while (!shared_link_ends.empty() && shared_link_ends.next_date() <= due) {
    const double looked_for = shared_link_ends.next_date();
    shared_link_ends.pop_bucket([&](std::uint64_t index) {
      SharedLink& link = shared_links[index];
      if (link.armed != looked_for) return;  // another date has taken its place
      link.armed = std::numeric_limits<double>::infinity();
      link.end_flows(date, due - date, [&](std::uint64_t token) {
        batch.push_back({listener->order(token, true), token, true});
      });
      watch(index);
    });
  }
}

/// Delivers the batch of now: SimGrid's flows that have ended are in it, and what else is due joins them.
void SimEngine::Impl::fire() {
  const double date = clock;
  if (date > precision_until) {
    precision_until = 2 * date;
    if (awake()) simgrid->set_precision(tolerance(precision_until));
  }
  firing = true;
  if (background_date <= date + tolerance(date)) deliver([&] { background_date = background(date); });
  const double due = date + tolerance(date);
  const bool timers_only = batch.empty() && !timers.empty() && timers.next_date() <= due &&
                           (shared_link_ends.empty() || shared_link_ends.next_date() > due) &&
                           (!class_flows || class_flows->next_end() > due);
  if (timers_only &&
      timers.only_one_in_order(due, [this](std::uint64_t token) { return listener->order(token, false); })) {
    // The usual case: workers in lock-step, in their order anyway.
    timers.pop_bucket([this](std::uint64_t token) { deliver([&] { listener->on_timer(token); }); });
    firing = false;
    return;
  }
  collect(date);
  if (!std::is_sorted(batch.begin(), batch.end())) std::stable_sort(batch.begin(), batch.end());
  for (const Event& event : batch)
    deliver([&] { event.is_flow ? listener->on_flow_done(event.token) : listener->on_timer(event.token); });
  batch.clear();
  firing = false;
}

void SimEngine::Impl::on_flow_done(std::size_t channel) {
  clock = std::max(clock, simgrid->clock());
  --ending_flows;
  channels->finish(channel, clock, [&](std::uint64_t token) {
    --flows_under_way;
    batch.push_back({listener->order(token, true), token, true});
  });
  if (ending_flows > 0) return;
  fire();
  go_on();
}

/// Sees to it that somebody looks at the link when its next flow ends.
void SimEngine::Impl::watch(std::size_t index) {
  SharedLink& link = shared_links[index];
  const double end = link.next_end();
  if (end >= link.armed || end == std::numeric_limits<double>::infinity()) return;
  link.armed = end;
  shared_link_ends.push(end, index);
}

/// Exceptions must not cross SimGrid's frames. After one, the events that are left pass unheard.
template <typename Action>
void SimEngine::Impl::deliver(Action&& action) {
  if (failure) return;
  try {
    action();
  } catch (...) {
    failure = std::current_exception();
  }
}

SimEngine::SimEngine(const Cluster& cluster, NetworkCorrection correction)
    : impl_(std::make_unique<Impl>(cluster.platform_file.string(), cluster.network, correction)) {}
SimEngine::SimEngine(const std::string& platform_xml_path, NetworkCorrection correction)
    : impl_(std::make_unique<Impl>(platform_xml_path, nullptr, correction)) {}
SimEngine::~SimEngine() = default;

int SimEngine::host_count() const { return impl_->platform->host_count(); }
const std::string& SimEngine::host_name(int host) const { return impl_->platform->host_name(host); }
int SimEngine::find_host(std::string_view name) const { return impl_->platform->find_host(name); }

int SimEngine::link_count() const { return impl_->platform->link_count(); }
const std::string& SimEngine::link_name(int link) const { return *impl_->platform->link(link).name; }
double SimEngine::link_bandwidth(int link) const { return impl_->platform->link(link).bandwidth; }
double SimEngine::link_latency(int link) const { return impl_->platform->link(link).latency; }
LinkSharing SimEngine::link_sharing(int link) const { return impl_->platform->link(link).sharing; }

const Route& SimEngine::route(int src, int dst) { return impl_->platform->route(src, dst); }

Route SimEngine::route_by_simgrid(int src, int dst) { return impl_->platform->route_by_simgrid(src, dst); }

double SimEngine::now() const { return impl_->clock; }

void SimEngine::set_listener(Listener& listener) { impl_->listener = &listener; }

/// Sums of some dozens of terms may differ by so much from the same sums in another order.
double SimEngine::tolerance(double date) { return std::max(kSmallestTolerance, 0x1p-48 * date); }

void SimEngine::start_timer(double date, std::uint64_t token) {
  impl_->timers.push(std::max(date, now()), token);
  impl_->arm();
}

void SimEngine::start_flow(int src, int dst, double bytes, std::uint64_t token) {
  assert(bytes >= 0 && bytes * kQuantaPerByte < 0x1p63);
  if (!impl_->shared_link_of.empty()) {
    const auto found = impl_->shared_link_of.find(impl_->platform->pair_key(src, dst));
    if (found != impl_->shared_link_of.end()) {
      impl_->shared_links[found->second].start(now(), bytes, token);
      impl_->watch(found->second);
      impl_->arm();
      return;
    }
  }
  ++impl_->flows_under_way;
  const Impl::Start start{src, dst, bytes, token};
  if (!impl_->awake() || impl_->simgrid->clock() < impl_->clock)
    impl_->starts.push_back(start);
  else
    impl_->start_at_simgrid(start);
  if (!impl_->starts.empty() || impl_->background) impl_->arm();
}

void SimEngine::declare_flows(const std::vector<std::pair<int, int>>& pairs) {
  impl_->shared_links.clear();
  impl_->shared_link_of.clear();
  for (const BottleneckGroup& group : find_single_bottlenecks(*this, pairs)) {
    for (const auto& [src, dst] : group.pairs)
      impl_->shared_link_of.emplace(impl_->platform->pair_key(src, dst), impl_->shared_links.size());
    impl_->shared_links.emplace_back(link_bandwidth(group.link));
  }
}

void SimEngine::declare_flow_classes(const FlowClasses& classes) {
  impl_->class_flows.reset();
  if (!classes.classes.empty()) impl_->class_flows.emplace(classes);
}

void SimEngine::start_class_flow(std::uint32_t flow_class, double bytes, std::uint64_t token) {
  // As exact as start_flow().
  impl_->class_flows->start(now(), flow_class, std::nearbyint(bytes * kQuantaPerByte) / kQuantaPerByte, token);
  impl_->arm();
}

void SimEngine::set_current_bandwidth(int link, double bandwidth) {
  if (impl_->awake()) impl_->platform->set_bandwidth(link, bandwidth);
  impl_->degraded.erase(link);
  if (bandwidth < link_bandwidth(link)) impl_->degraded.emplace(link, bandwidth);
}

void SimEngine::set_background(double date, std::function<double(double)> happen) {
  impl_->background_date = happen ? date : std::numeric_limits<double>::infinity();
  impl_->background = std::move(happen);
  impl_->arm();
}

bool SimEngine::is_running() const { return impl_->running; }

void SimEngine::run() {
  assert(impl_->listener != nullptr);
  const Running running(impl_->running);
  impl_->go_on();  // as far as it goes without SimGrid, awake or not, or a second run would be rounded otherwise
  if (impl_->awake()) impl_->simgrid->run();
  if (impl_->failure) std::rethrow_exception(std::exchange(impl_->failure, nullptr));
  if (impl_->flows_under_way > 0)
    throw std::runtime_error("SimGrid has stopped with flows under way (a step of its clock was too long)");
}

bool SimEngine::Impl::restart() {
  const bool idle = flows_under_way == 0 && timers.empty() && shared_link_ends.empty() && batch.empty();
  if (!idle || failure || (awake() && !simgrid->turn_back_clock())) return false;
  disarm();
  clock = 0;
  if (awake())
    for (const auto& [link, bandwidth] : degraded) platform->set_bandwidth(link, platform->link(link).bandwidth);
  degraded.clear();
  background_date = std::numeric_limits<double>::infinity();
  background = nullptr;
  shared_links.clear();
  shared_link_of.clear();
  class_flows.reset();
  precision_until = 0;
  if (awake()) simgrid->set_precision(kSmallestTolerance);
  return true;
}

bool restart_engine() { return !restart_current || restart_current(); }

}  // namespace epocast
