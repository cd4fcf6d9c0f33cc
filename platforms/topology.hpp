#pragma once
// The zones, hosts, links and routes of a platform file, resolved and checked one by one.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "platforms/xml_source.hpp"

namespace epocast {

/// How a zone finds its routes.
enum class Routing {
  full,           ///< <route> or <zoneRoute> for each pair
  shortest_path,  ///< Floyd and Dijkstra: over several of them
  none,           ///< no routes at all
  cluster,        ///< made by SimGrid; each reaches each
};

struct Property {
  std::string value;
  pugi::xml_node node;
};
using Properties = std::map<std::string, Property>;

/// One direction of a <route> or <zoneRoute>.
struct RouteEdge {
  int from = 0;  ///< points of a zone that holds hosts; else zones
  int to = 0;
  int gateway_from = -1;  ///< points; only between zones
  int gateway_to = -1;
  pugi::xml_node node;
};

struct Zone {
  std::string name;
  int parent = -1;
  Routing routing = Routing::none;
  std::vector<int> zones;   ///< direct children
  std::vector<int> points;  ///< hosts and routers directly in it
  std::vector<RouteEdge> edges;
  Properties properties;
  pugi::xml_node node;
};

/// A host or router.
struct Point {
  std::string name;
  int zone = 0;
  bool is_host = false;
  pugi::xml_node node;  ///< the <host>, <router>, or the <cluster> it is from
};

struct Topology {
  std::vector<Zone> zones;    ///< parents before children; [0] is the outer one
  std::vector<Point> points;  ///< in file order
  std::map<pugi::xml_node, Properties> host_properties;
  Properties link_sources;  ///< source.* properties of links

  /// Whether the zone is `outer` or lies in it.
  bool within(int zone, int outer) const;
};

/// Reads the document. Throws ConfigError for everything that is wrong with a single element or name.
Topology read_topology(const XmlSource& xml);

}  // namespace epocast
