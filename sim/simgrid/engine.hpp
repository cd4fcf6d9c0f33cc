#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "sim/network_graph.hpp"

namespace epocast {

struct Cluster;
struct FlowClasses;

/// The way a message takes from one host to another.
struct Route {
  std::vector<int> links;   ///< Link indices in the order of travel; a split-duplex link is two links, up and down.
  double latency = 0;       ///< Sum of the links' latencies in the platform file [s].
  double bandwidth = 0;     ///< Of the slowest link: the rate of a flow that is alone [B/s].
  std::vector<int> narrow;  ///< See bottlenecks(); empty if those are all.

  /// The links that a flow can have to wait for: without those that others on its way always fill first (an uplink as
  /// fast as all ports below it), which matter to who counts bytes only.
  const std::vector<int>& bottlenecks() const { return narrow.empty() ? links : narrow; }
};

/// How the real network differs from the nominal figures of a platform file.
struct NetworkCorrection {
  double efficiency = 1;        ///< factor on every link's bandwidth; REQUIRES > 0
  double message_overhead = 0;  ///< added to every route's latency [s]
};

/// Platform, clock, timers and contended network flows. Flows that compete in a way that needs a solver are SimGrid's,
/// and so are the routes of platforms that are not described by a NetworkGraph (simgrid.hpp).
///
/// Time model: a flow moves its bytes at the max-min fair rate of the links on its route and has no latency of its own.
/// The caller charges Route::latency with a timer before the flow, because SimGrid would share a link in inverse
/// proportion to the latencies of the flows.
///
/// Events whose dates differ by no more than rounding (tolerance(), at least 1e-12 s) are one batch: they all happen at
/// the date of the first, in the order that the listener gives them. Otherwise dates are exact up to rounding.
///
/// One engine per process, ever: SimGrid keeps its state, the clock included, in globals that outlive it. Simulate the
/// next scenario in a forked child. Some broken platforms (hosts missing from a fat tree or torus, most missing routes)
/// make SimGrid abort or crash, usually with the reason on the first line of stderr: load what is not trusted in a
/// forked child too. SimGrid's log is silent below "critical".
class SimEngine {
 public:
  /// Receives all events. Both functions may start timers and flows. The first exception that one of them throws leaves
  /// run(), after the events that are still pending have passed unheard.
  struct Listener {
    virtual ~Listener() = default;
    virtual void on_timer(std::uint64_t token) = 0;
    virtual void on_flow_done(std::uint64_t token) = 0;
    /// Where an event stands among those of its batch: smallest first. Those with the same number come in the order in
    /// which their dates were fixed, which rounding may change; so a listener whose events compete should tell.
    virtual std::uint64_t order(std::uint64_t /*token*/, bool /*is_flow*/) const { return 0; }
  };

  /// Of the platform file of a cluster. Where the cluster has the file's network, SimGrid loads it when flows first
  /// compete in a way that only SimGrid can solve, or never: then what is said below comes from run(), and
  /// std::logic_error if the file now says something else.
  explicit SimEngine(const Cluster& cluster, NetworkCorrection correction = {});

  /// Loads a SimGrid platform file.
  /// Throws std::runtime_error with SimGrid's message (mostly `file:line: problem`) where SimGrid reports the error at
  /// all, or if a bandwidth is not positive or a latency is negative; std::logic_error for a second engine in this
  /// process.
  explicit SimEngine(const std::string& platform_xml_path, NetworkCorrection correction = {});
  ~SimEngine();
  SimEngine(const SimEngine&) = delete;
  SimEngine& operator=(const SimEngine&) = delete;

  /// Hosts are numbered in the order of their creation: that of the file, and of the radical inside a <cluster>.
  int host_count() const;
  const std::string& host_name(int host) const;
  int find_host(std::string_view name) const;  ///< -1 if there is none.

  /// Links are numbered in the alphabetical order of their names.
  int link_count() const;
  const std::string& link_name(int link) const;
  double link_bandwidth(int link) const;  ///< Times the correction's efficiency [B/s].
  double link_latency(int link) const;    ///< As in the platform file [s].
  LinkSharing link_sharing(int link) const;

  /// The route from src to dst; computed once, and valid as long as the engine. A host reaches itself through a
  /// loopback link or, in a <cluster> without one, through its own up and down links. Throws std::runtime_error if no
  /// link joins the two (but Dijkstra routing crashes).
  const Route& route(int src, int dst);

  /// From now on each message of a collective leaves only when its receiver's notice has come, which took so many of
  /// the route's latencies. 0 at first.
  void set_handshake(double latencies) { handshake_ = latencies; }
  /// s before the bytes of a collective's message flow.
  double collective_latency(const Route& route) const { return (1 + handshake_) * route.latency; }

  /// From now on a connection of a collective has at most so many bytes under way before its receiver's next notice
  /// (in_windows()); 0, as at first: any number.
  void set_window(double bytes) { window_ = bytes; }
  double window() const { return window_; }
  double handshake() const { return handshake_; }

  /// What somebody works out from the platform and wants to find again: one of each type, made when it is first asked
  /// for, as long as the engine.
  template <class T>
  T& kept() {
    std::shared_ptr<void>& place = kept_[typeid(T)];
    if (!place) place = std::make_shared<T>();
    return *static_cast<T*>(place.get());
  }

  /// The same as SimGrid's own search finds it, for tests.
  Route route_by_simgrid(int src, int dst);

  double now() const;  ///< [s]

  void set_listener(Listener& listener);  ///< REQUIRES: before run(); the listener outlives it.

  /// Calls on_timer(token) at `date` [s], or at once (inside run(), after the current event) if that is not after
  /// now().
  void start_timer(double date, std::uint64_t token);

  /// Moves `bytes` [B], rounded to 1/1024 B, from src to dst and calls on_flow_done(token) when the last one has
  /// arrived. A flow of no bytes ends at once, inside run(). REQUIRES: route(src, dst) does not throw, or SimGrid
  /// aborts; bytes < 2^53.
  void start_flow(int src, int dst, double bytes, std::uint64_t token);

  /// Declares that until the next call all flows will be between these pairs of hosts (each given once). Those that can
  /// have only one bottleneck then need no solver, which is much faster where many share it; dates are the same up to
  /// rounding. No pairs: nothing is known. REQUIRES: no flow is under way.
  void declare_flows(const std::vector<std::pair<int, int>>& pairs);

  /// Declares classes of flows for start_class_flow(), until the next call. They meet no flow of start_flow().
  /// REQUIRES: no flow is under way.
  void declare_flow_classes(const FlowClasses& classes);
  /// start_flow() for one flow that stands for its class: all of the class start now, and end together.
  void start_class_flow(std::uint32_t flow_class, double bytes, std::uint64_t token);

  /// Changes a link's bandwidth [B/s] from now on, for what is under way as well; link_bandwidth() and routes keep the
  /// nominal one. REQUIRES: bandwidth > 0 and at most the nominal one; no flows were declared that cross it.
  void set_current_bandwidth(int link, double bandwidth);
  /// From now on calls `happen(date)` at `date`, before what else happens then, and again at the date that it returns;
  /// but never again once it returns infinity or nothing else is left to happen. Replaces what was set before.
  void set_background(double date, std::function<double(double)> happen);

  /// Within how much time events near `date` are one batch [s].
  static double tolerance(double date);

  /// Runs until neither timers nor flows are left; may be called again. REQUIRES: !is_running().
  void run();
  bool is_running() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  double handshake_ = 0;
  double window_ = 0;
  std::map<std::type_index, std::shared_ptr<void>> kept_;
};

}  // namespace epocast
