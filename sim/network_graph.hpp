#pragma once
// Hosts, switches and links of a network in which routes are the shortest.

#include <cstdint>
#include <string>
#include <vector>

namespace epocast {

/// How the flows that cross a link share it.
enum class LinkSharing {
  kShared,   ///< The rates of all flows add up to at most the bandwidth.
  kFatpipe,  ///< Each flow alone is limited to the bandwidth (a non-blocking switch).
  kOther     ///< Wi-Fi or non-linear links: simulated by SimGrid, not described here.
};

/// All that routes and contention depend on: who has this needs no SimGrid until flows compete.
struct NetworkGraph {
  struct Link {
    std::string name;
    double latency = 0;    ///< [s]
    double bandwidth = 0;  ///< [B/s]
    LinkSharing sharing = LinkSharing::kShared;
  };
  /// One direction of a connection between two points, over one link.
  struct Way {
    std::uint32_t from = 0, to = 0;  ///< points: the hosts by number, then switches
    int link = 0;                    ///< index
  };
  std::vector<std::string> hosts;  ///< names, in the order of Cluster::devices
  std::vector<Link> links;         ///< in the alphabetical order of their names; a split-duplex link is two
  std::vector<Way> ways;           ///< in the order of the platform file
  int loopback = -1;               ///< link by which each host reaches itself; none if negative
  int turning_point = -1;          ///< or else the switch over which it does so
  bool sure = true;                ///< false: SimGrid may refuse the file or read something else in it
};

}  // namespace epocast
