#pragma once
// Hosts, links and routes of a platform file as SimGrid has loaded it. Only for the engine: see engine.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/simgrid/engine.hpp"
#include "sim/simgrid/shortest_routes.hpp"

namespace simgrid::s4u {
class Engine;
class Host;
class Link;
}  // namespace simgrid::s4u
namespace simgrid::kernel::routing {
class NetPoint;
}
namespace simgrid::kernel::resource {
class StandardLinkImpl;
}

namespace epocast {

/// SimGrid takes whole bytes only, so it is given all volumes and bandwidths in 1/1024 B. A power of two is exact.
inline constexpr double kQuantaPerByte = 1024;

class SimPlatform {
 public:
  struct Host {
    ::simgrid::s4u::Host* handle;
    std::string name;
  };
  struct Link {
    ::simgrid::s4u::Link* handle;
    double latency;    ///< as in the file [s]; SimGrid's is 0
    double bandwidth;  ///< as in the file, corrected [B/s]
    LinkSharing sharing;
  };

  /// Loads a file into the engine, which outlives this. Throws as SimEngine's constructor does.
  SimPlatform(::simgrid::s4u::Engine& engine, const std::string& path, NetworkCorrection correction);
  SimPlatform(const SimPlatform&) = delete;
  SimPlatform& operator=(const SimPlatform&) = delete;

  const std::vector<Host>& hosts() const { return hosts_; }
  const Host& host(int host) const { return hosts_.at(static_cast<std::size_t>(host)); }
  int link_count() const { return static_cast<int>(links_.size()); }
  const Link& link(int link) const { return links_.at(static_cast<std::size_t>(link)); }
  int find_host(std::string_view name) const;
  std::string host_property(int host, const std::string& key) const;

  /// Of two hosts.
  std::uint64_t pair_key(int src, int dst) const {
    return static_cast<std::uint64_t>(src) * hosts_.size() + static_cast<std::uint64_t>(dst);
  }
  /// B/s from now on.
  void set_bandwidth(int link, double bandwidth);

  /// See SimEngine. A route is computed once.
  const Route& route(int src, int dst);
  Route route_by_simgrid(int src, int dst);

 private:
  /// Of the platform, while it is loaded.
  struct Connection {
    const ::simgrid::kernel::routing::NetPoint *from, *to;
    std::vector<::simgrid::kernel::resource::StandardLinkImpl*> links;
    bool symmetrical;
  };

  void load(::simgrid::s4u::Engine& engine, const std::string& path);
  void index_links(::simgrid::s4u::Engine& engine);
  std::vector<int> find_other_ways() const;
  void learn_shortest_routes();
  Route compute_route(const ::simgrid::s4u::Host& src, const ::simgrid::s4u::Host& dst) const;

  ::simgrid::s4u::Engine& engine_;
  NetworkCorrection correction_;
  std::vector<Host> hosts_;
  std::vector<Link> links_;
  std::unordered_map<std::string_view, int> host_index_;  ///< views into hosts_
  std::unordered_map<const ::simgrid::s4u::Link*, int> link_index_;
  std::unordered_map<std::uint64_t, Route> routes_;  ///< key: pair_key()
  std::vector<Connection> connections_;
  mutable std::optional<ShortestRoutes> shortest_;  ///< of a platform whose routes they are
  std::vector<bool> redundant_;                     ///< by link, with shortest_: see find_redundant_links()
};

}  // namespace epocast
