#pragma once
// Hosts, links and routes of a platform. Only for the engine: see engine.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/network_graph.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/simgrid/route_table.hpp"
#include "sim/simgrid/shortest_routes.hpp"
#include "sim/simgrid/simgrid.hpp"

namespace epocast {

/// SimGrid takes whole bytes only, so it is given all volumes and bandwidths in 1/1024 B. A power of two is exact.
inline constexpr double kQuantaPerByte = 1024;

/// Where a graph of the network is given, SimGrid is told it, only when flows compete, and loads the file only if
/// routes are to be compared: on 16,384 devices that takes as long as everything else, and 100 MB.
class SimPlatform {
 public:
  struct Link {
    const std::string* name;  ///< of the graph, or SimGrid's
    double latency;           ///< as in the file [s]; SimGrid's is 0
    double bandwidth;         ///< as in the file, corrected [B/s]
    LinkSharing sharing;
  };

  /// `graph`, which outlives this: of the same file; without one, loads it. Throws as SimEngine's constructor does.
  SimPlatform(std::string path, const NetworkGraph* graph, NetworkCorrection correction);
  SimPlatform(const SimPlatform&) = delete;
  SimPlatform& operator=(const SimPlatform&) = delete;

  int host_count() const { return static_cast<int>(hosts_.size()); }
  const std::string& host_name(int host) const { return hosts_.at(static_cast<std::size_t>(host)); }
  int find_host(std::string_view name) const;
  int link_count() const { return static_cast<int>(links_.size()); }
  const Link& link(int link) const { return links_.at(static_cast<std::size_t>(link)); }

  /// Of two hosts.
  std::uint64_t pair_key(int src, int dst) const {
    return static_cast<std::uint64_t>(src) * hosts_.size() + static_cast<std::uint64_t>(dst);
  }

  /// See SimEngine. A route is computed once.
  const Route& route(int src, int dst);
  Route route_by_simgrid(int src, int dst);

  /// SimGrid with this platform loaded; the first call does that, and throws as the constructor does.
  SimGrid& simgrid();
  /// B/s from now on. REQUIRES: simgrid() has been called.
  void set_bandwidth(int link, double bandwidth);

 private:
  void take(const NetworkGraph& graph);
  void load();
  void take_hosts();
  void take_links();
  void index_hosts();
  /// The links of the graph from one point to another, and from a host over a switch to itself; none if there are none.
  std::optional<std::vector<int>> way(int from, int to);
  std::optional<std::vector<int>> way_to_itself(int host);
  Route make_route(std::vector<int> links) const;

  std::string path_;
  const NetworkGraph* graph_;
  NetworkCorrection correction_;
  std::vector<std::string> hosts_;
  std::vector<Link> links_;
  std::unordered_map<std::string_view, int> host_index_;  ///< views into hosts_
  RouteTable routes_;                                     ///< key: pair_key()
  std::optional<ShortestRoutes> shortest_;                ///< of the graph
  std::vector<bool> redundant_;                           ///< by link, with shortest_: see find_redundant_links()

  SimGrid* simgrid_ = nullptr;  ///< once it is loaded
};

}  // namespace epocast
