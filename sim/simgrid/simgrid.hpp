#pragma once
// SimGrid, loaded when it is needed.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/network_graph.hpp"

namespace epocast {

/// All that epocast takes from SimGrid: a platform's hosts, links and routes, a clock with one timer, and flows that
/// compete. Its libraries take 20 ms and 28 MB to load, more than most runs do without them; so what includes its
/// headers is in a module of its own, and this is all that anybody else sees of it.
///
/// Flows carry numbers that are the caller's. Volumes are whole [quanta], rates and bandwidths in quanta/s: SimGrid
/// takes any unit.
class SimGrid {
 public:
  /// Told of what happens while run() runs. Exceptions must not leave these functions.
  struct Listener {
    virtual void on_timer() = 0;
    /// A flow has moved all; its on_flow_done() comes at the same date, after the timer's.
    virtual void on_flow_stopped() = 0;
    virtual void on_flow_done(std::size_t flow) = 0;

   protected:
    ~Listener() = default;
  };
  struct Link {
    std::string name;
    double latency = 0;    ///< as in the file [s]; none from now on
    double bandwidth = 0;  ///< as in the file [B/s]
    LinkSharing sharing = LinkSharing::kShared;
  };
  /// What is left of a flow, and how fast it goes down now. Nothing of one that has stopped.
  struct Progress {
    double left = 0;
    double rate = 0;
  };

  SimGrid() = default;
  virtual ~SimGrid() = default;
  SimGrid(const SimGrid&) = delete;
  SimGrid& operator=(const SimGrid&) = delete;

  /// Of a platform file, which nothing changes from then on but set_bandwidth(). REQUIRES: the file is there; the first
  /// call. Throws std::runtime_error with SimGrid's message, mostly `file:line: problem`.
  virtual void load(const std::string& path) = 0;
  /// By source and target: the links of a route, in the order of travel. Throws if there is none.
  using Routes = std::function<const std::vector<int>&(int src, int dst)>;
  /// The same of a network that somebody else has read and finds routes in, which takes a fraction of the time: SimGrid
  /// goes through the whole network for each host that sends. REQUIRES: the first call; no other sharing than shared
  /// and fatpipe.
  virtual void load(const NetworkGraph& graph, Routes routes) = 0;
  virtual const std::vector<std::string>& hosts() const = 0;  ///< in the order of their creation
  virtual const std::vector<Link>& links() const = 0;         ///< in the alphabetical order of their names
  virtual void set_bandwidth(int link, double quanta) = 0;
  /// The links from one host to another, in the order of travel. Throws std::runtime_error with the reason if there are
  /// none, but Dijkstra routing crashes.
  virtual std::vector<int> route(int src, int dst) const = 0;

  virtual void listen(Listener& listener) = 0;  ///< REQUIRES: before run(), once; it outlives this.
  /// Flows that would end within this time [s] after an event end with it.
  virtual void set_precision(double seconds) = 0;
  virtual double clock() const = 0;  ///< [s]
  /// To zero. False where that is not to be had. REQUIRES: no flow, no timer.
  virtual bool turn_back_clock() = 0;
  virtual void set_timer(double date) = 0;  ///< REQUIRES: none is set.
  virtual void remove_timer() = 0;          ///< REQUIRES: one is set, and has not come.
  /// Until neither the timer nor flows are left.
  virtual void run() = 0;

  /// Starts a flow that stands for `weight` flows of one, which get equal shares.
  virtual void start_flow(std::size_t flow, int src, int dst, double volume, double weight) = 0;
  virtual Progress progress(std::size_t flow) const = 0;
  /// REQUIRES: it has not stopped.
  virtual void change_flow(std::size_t flow, double volume, double weight) = 0;
  /// Those under way are never heard of again.
  virtual void cancel_flows() = 0;
};

/// This process's; the first call loads the module. Throws std::runtime_error if it is not there.
SimGrid& load_simgrid();

/// Whether load_simgrid() has been called in this process, or in the one that it was forked from.
bool simgrid_is_loaded();

}  // namespace epocast
