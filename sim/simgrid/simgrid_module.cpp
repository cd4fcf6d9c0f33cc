// The module that has SimGrid in it; the only file that includes its headers.

#include <simgrid/forward.h>  // version.h does not compile alone
#include <simgrid/version.h>
#include <xbt/graph.h>
#include <xbt/log.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/simgrid/simgrid.hpp"

#if SIMGRID_VERSION < 33300
/// Stands in for the function of this name in libsimgrid, which calls it through the dynamic symbol table. 3.32
/// detaches every host-to-host comm, so that nobody needs to own it. That puts it on a list which is scanned from end
/// to end when any comm ends: quadratic in the number of concurrent flows (8192: 8 us per flow instead of 2). Our comms
/// are owned. Where the loader does not replace the function, results are the same and flows are slower.
namespace simgrid::kernel::activity {
class XBT_PUBLIC CommImpl {
 public:
  CommImpl& detach();
};
CommImpl& CommImpl::detach() { return *this; }
}  // namespace simgrid::kernel::activity

/// As above. Loading a network asks before each connection whether it has it already, and 3.32 looks for it among all
/// that leave its source: quadratic in the ports of a switch (16,384: a sixth of a plan's time). Either end will do.
xbt_edge_t xbt_graph_get_edge(const s_xbt_graph_t*, const s_xbt_node_t* src, const s_xbt_node_t* dst) {
  const s_xbt_dynar_t* const fewer = xbt_dynar_length(dst->in) < xbt_dynar_length(src->out) ? dst->in : src->out;
  for (unsigned long i = 0; i < xbt_dynar_length(fewer); ++i) {
    const xbt_edge_t edge = xbt_dynar_get_as(fewer, i, xbt_edge_t);
    if (edge->src == src && edge->dst == dst) return edge;
  }
  return nullptr;
}

/// SimGrid's clock, which it exports without a header. Nothing else in it remembers dates once no flow, timer or actor
/// is left.
namespace simgrid::kernel {
class XBT_PUBLIC EngineImpl {
 public:
  static double now_;
};
}  // namespace simgrid::kernel
#endif

namespace epocast {
namespace {

namespace s4u = ::simgrid::s4u;
using ::simgrid::kernel::resource::Action;
using ::simgrid::kernel::resource::Model;
using ::simgrid::kernel::resource::NetworkAction;
using ::simgrid::kernel::timer::Timer;

LinkSharing sharing_of(const s4u::Link& link) {
  switch (link.get_sharing_policy()) {
    case s4u::Link::SharingPolicy::SHARED: return LinkSharing::kShared;
    case s4u::Link::SharingPolicy::FATPIPE: return LinkSharing::kFatpipe;
    default: return LinkSharing::kOther;
  }
}

s4u::Engine* start_simgrid() {
  xbt_log_control_set("root.thresh:critical root.fmt:%m%n");
  const auto interrupt_handler = std::signal(SIGINT, SIG_DFL);
  auto* const engine = new s4u::Engine("epocast");
  std::signal(SIGINT, interrupt_handler);  // SimGrid's own prints its actors and exits with 1
  // CM02 without the TCP corrections is bytes/bandwidth exactly. All this has to come before the platform.
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:0");
  return engine;
}

/// A network that is told its routes.
class KnownRoutes final : public ::simgrid::kernel::routing::NetZoneImpl {
 public:
  using NetPoint = ::simgrid::kernel::routing::NetPoint;
  using Route = ::simgrid::kernel::routing::Route;
  using Find = std::function<void(int src, int dst, Route& into)>;

  KnownRoutes(const std::string& name, Find find) : NetZoneImpl(name), find_(std::move(find)) {}

  /// Hosts are all its points, so that they are numbered by their creation.
  void get_local_route(const NetPoint* src, const NetPoint* dst, Route* into, double* /*latency*/) override {
    find_(static_cast<int>(src->id()), static_cast<int>(dst->id()), *into);
  }
  void get_graph(const s_xbt_graph_t* /*graph*/, std::map<std::string, xbt_node_t, std::less<>>* /*nodes*/,
                 std::map<std::string, xbt_edge_t, std::less<>>* /*edges*/) override {}

 private:
  Find find_;
};

class Module final : public SimGrid {
 public:
  void load(const std::string& path) override;
  void load(const NetworkGraph& graph, Routes routes) override;
  const std::vector<std::string>& hosts() const override { return hosts_; }
  const std::vector<Link>& links() const override { return links_; }
  void set_bandwidth(int link, double quanta) override {
    link_handles_[static_cast<std::size_t>(link)]->set_bandwidth(quanta);
  }
  std::vector<int> route(int src, int dst) const override;

  void listen(Listener& listener) override;
  void set_precision(double seconds) override;
  double clock() const override { return s4u::Engine::get_clock(); }
  bool turn_back_clock() override;
  void set_timer(double date) override;
  void remove_timer() override;
  void run() override { engine_->run(); }

  void start_flow(std::size_t flow, int src, int dst, double volume, double weight) override;
  Progress progress(std::size_t flow) const override;
  void change_flow(std::size_t flow, double volume, double weight) override;
  void cancel_flows() override;

 private:
  struct Flow {
    s4u::CommPtr comm;
    Action* action = nullptr;  // of `comm`
  };
  void take_hosts(const std::vector<s4u::Host*>& created);
  void take_links();
  s4u::Host* host(int host) const { return host_handles_[static_cast<std::size_t>(host)]; }

  s4u::Engine* engine_ = nullptr;  // never deleted: SimGrid would take its network apart, for nobody
  Model* network_ = nullptr;
  std::vector<std::string> hosts_;
  std::vector<s4u::Host*> host_handles_;
  std::vector<Link> links_;
  std::vector<s4u::Link*> link_handles_;
  std::unordered_map<const s4u::Link*, int> link_index_;
  Listener* listener_ = nullptr;
  Timer* timer_ = nullptr;
  std::vector<Flow> flows_;
  s4u::CommPtr finished_;
};

void Module::load(const std::string& path) {
  engine_ = start_simgrid();
  static std::vector<s4u::Host*> created;
  s4u::Host::on_creation_cb([](s4u::Host& host) { created.push_back(&host); });
  try {
    engine_->load_platform(path);
  } catch (const std::exception& error) {
    std::string message = error.what();
    constexpr std::string_view kPrefix = "Parse error at ";
    if (message.starts_with(kPrefix)) message.erase(0, kPrefix.size());
    throw std::runtime_error(message);
  }
  take_hosts(created);
  if (hosts_.empty()) throw std::runtime_error(path + ": a platform without hosts");
  take_links();
  engine_->seal_platform();
}

void Module::load(const NetworkGraph& graph, Routes routes) {
  engine_ = start_simgrid();
  // The engine owns its zones, and is never deleted.
  auto* const zone =
      new KnownRoutes("network", [this, routes = std::move(routes)](int src, int dst, KnownRoutes::Route& into) {
        for (const int link : routes(src, dst))
          into.link_list_.push_back(link_handles_[static_cast<std::size_t>(link)]->get_impl());
      });
  for (const std::string& name : graph.hosts) host_handles_.push_back(zone->get_iface()->create_host(name, 1.0));
  hosts_ = graph.hosts;
  link_handles_.reserve(graph.links.size());
  for (const NetworkGraph::Link& link : graph.links) {
    s4u::Link* const handle = zone->get_iface()->create_link(link.name, link.bandwidth);
    if (link.sharing == LinkSharing::kFatpipe) handle->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    handle->set_latency(0)->seal();  // the caller charges it
    link_index_.emplace(handle, static_cast<int>(link_handles_.size()));
    link_handles_.push_back(handle);
    links_.push_back({link.name, link.latency, link.bandwidth, link.sharing});
  }
  engine_->seal_platform();
}

void Module::take_hosts(const std::vector<s4u::Host*>& created) {
  std::unordered_set<const s4u::Host*> known;
  for (s4u::Host* host : created) {
    if (!known.insert(host).second) continue;  // some kinds of zones announce their hosts twice
    host_handles_.push_back(host);
    hosts_.push_back(host->get_name());
  }
}

void Module::take_links() {
  std::vector<std::pair<std::string_view, s4u::Link*>> by_name;  // asking for a name is slow
  for (s4u::Link* link : engine_->get_all_links()) by_name.emplace_back(link->get_name(), link);
  // They come in that order zone by zone.
  const auto rest = std::ranges::is_sorted_until(by_name);
  std::ranges::sort(rest, by_name.end());
  std::ranges::inplace_merge(by_name, rest);
  link_index_.reserve(by_name.size());
  for (const auto& [name, link] : by_name) {
    if (!(link->get_bandwidth() > 0 && link->get_latency() >= 0))
      throw std::runtime_error("link " + std::string(name) + ": bandwidth is not positive or latency is negative");
    link_index_.emplace(link, static_cast<int>(link_handles_.size()));
    link_handles_.push_back(link);
    links_.push_back({std::string(name), link->get_latency(), link->get_bandwidth(), sharing_of(*link)});
    link->set_latency(0);  // the caller charges it
  }
}

std::vector<int> Module::route(int src, int dst) const {
  std::vector<s4u::Link*> handles;
  double extra_latency = 0;
  host(src)->route_to(host(dst), handles, &extra_latency);
  if (handles.empty()) throw std::runtime_error("no link");
  if (extra_latency != 0)
    throw std::runtime_error("latency that belongs to no link");  // Vivaldi coordinates; flows would pay it
  std::vector<int> links;
  for (const s4u::Link* link : handles) links.push_back(link_index_.at(link));
  return links;
}

void Module::listen(Listener& listener) {
  listener_ = &listener;
#if SIMGRID_VERSION < 33300
  using SignalSource = s4u::Activity;
#else
  using SignalSource = s4u::Comm;
#endif
  SignalSource::on_completion_cb([this](const SignalSource& comm) {
    const auto number = reinterpret_cast<std::size_t>(comm.get_data<void>());
    Flow& flow = flows_[number];
    // Let go when the next one ends: its memory is then the first to be used again, and is still in the cache.
    finished_ = std::exchange(flow.comm, nullptr);
    flow.action = nullptr;
    listener_->on_flow_done(number);
  });
  // Flows end while SimGrid advances its clock, timers fire next, and then it tells who has ended.
  s4u::Link::on_communication_state_change_cb([this](const NetworkAction&, Action::State before) {
    if (before == Action::State::STARTED) listener_->on_flow_stopped();
  });
  for (Model* model : engine_->get_all_models())
    if (model->get_name().starts_with("Network")) network_ = model;
  if (network_ == nullptr) throw std::logic_error("SimGrid has no network model");
}

void Module::set_precision(double seconds) {
  char setting[64];
  std::snprintf(setting, sizeof setting, "%s:%.17g", SIMGRID_VERSION < 33300 ? "surf/precision" : "precision/timing",
                seconds);
  s4u::Engine::set_config(setting);
}

bool Module::turn_back_clock() {
#if SIMGRID_VERSION < 33300
  ::simgrid::kernel::EngineImpl::now_ = 0;
#endif
  return s4u::Engine::get_clock() == 0;
}

void Module::set_timer(double date) {
  timer_ = Timer::set(date, [this] {
    timer_ = nullptr;
    listener_->on_timer();
  });
}

void Module::remove_timer() { std::exchange(timer_, nullptr)->remove(); }

void Module::start_flow(std::size_t number, int src, int dst, double volume, double weight) {
  if (number >= flows_.size()) flows_.resize(number + 1);
  Flow& flow = flows_[number];
  flow.comm = s4u::Comm::sendto_init(host(src), host(dst));
  flow.comm->set_payload_size(static_cast<std::uint64_t>(std::ceil(volume)));
  flow.comm->set_data(reinterpret_cast<void*>(number));
  flow.comm->start();
  flow.action = &network_->get_started_action_set()->back();
  flow.action->set_remains(volume);
  if (weight > 1) flow.action->set_sharing_penalty(1 / weight);
}

SimGrid::Progress Module::progress(std::size_t number) const {
  Action& action = *flows_[number].action;
  if (action.get_state() != Action::State::STARTED) return {};
  const double rate = action.get_last_value();
  return {action.get_remains_no_update() - rate * (clock() - action.get_last_update()), rate};
}

void Module::change_flow(std::size_t number, double volume, double weight) {
  Action& action = *flows_[number].action;
  action.set_remains(volume);
  action.set_last_update();
  action.set_sharing_penalty(1 / weight);
}

void Module::cancel_flows() {
  for (Flow& flow : flows_)
    if (flow.comm) flow.comm->set_state(s4u::Activity::State::CANCELED);  // or its destructor prints a backtrace
  flows_.clear();
}

}  // namespace
}  // namespace epocast

extern "C" XBT_PUBLIC epocast::SimGrid* epocast_make_simgrid();
epocast::SimGrid* epocast_make_simgrid() { return new epocast::Module; }
