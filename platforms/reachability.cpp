#include "platforms/reachability.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace epocast {

namespace {

// Zones and points are called members of the zone that directly holds them; a zone holds one or the other.
class Checker {
 public:
  Checker(const XmlSource& xml, const Topology& topology)
      : xml_(xml), topology_(topology), edges_(topology.zones.size()) {
    for (std::size_t z = 0; z < topology_.zones.size(); ++z)
      for (const RouteEdge& edge : topology_.zones[z].edges) edges_[z].emplace(key(edge.from, edge.to), &edge);
    count_hosts();
  }

  void check() {
    for (std::size_t z = 0; z < topology_.zones.size(); ++z) {
      check_members(static_cast<int>(z));
      check_gateways(static_cast<int>(z));
    }
  }

 private:
  static std::uint64_t key(int from, int to) {
    return (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
  }

  void count_hosts() {
    hosts_in_.assign(topology_.zones.size(), 0);
    for (const Point& point : topology_.points)
      if (point.is_host)
        for (int z = point.zone; z >= 0; z = topology_.zones[z].parent) ++hosts_in_[z];
  }

  std::string member_name(int zone, int member) const {
    return quote(topology_.zones[zone].zones.empty() ? topology_.points[member].name : topology_.zones[member].name);
  }

  // What has to reach each other directly in this zone: hosts, or zones with hosts.
  std::vector<int> members(int z) const {
    const Zone& zone = topology_.zones[z];
    std::vector<int> out;
    for (const int point : zone.points)
      if (topology_.points[point].is_host) out.push_back(point);
    for (const int child : zone.zones)
      if (hosts_in_[child] > 0) out.push_back(child);
    return out;
  }

  void check_members(int z) {
    const Zone& zone = topology_.zones[z];
    if (zone.routing == Routing::cluster) return;
    const std::vector<int> all = members(z);
    if (zone.routing == Routing::shortest_path) return check_paths(z, all);
    for (const int a : all)
      for (const int b : all)
        for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
          if (!joined(z, from, to)) fail_missing(z, from, to);
  }

  // Reaching is transitive over shortest paths: from the first member and back to it is enough.
  void check_paths(int z, const std::vector<int>& all) {
    if (all.empty()) return;
    const int first = all.front();
    const auto reaching = search(first, neighbours(z, false));
    for (const int member : all) {
      if (!reaching.contains(member)) fail_missing(z, member, first);
      if (!reached_from(z, first).contains(member)) fail_missing(z, first, member);
    }
  }

  [[noreturn]] void fail_missing(int z, int from, int to) const {
    const Zone& zone = topology_.zones[z];
    const char* element = zone.zones.empty() ? "route" : "zoneRoute";
    xml_.fail(zone.node, fmt::format("no route from {} to {}: {}", member_name(z, from), member_name(z, to),
                                     zone.routing == Routing::none
                                         ? "routing=\"None\" joins nobody; write routing=\"Full\" and add routes"
                                         : fmt::format("add a <{}> to this zone", element)));
  }

  // Whether the routes of zone z itself join two of its members.
  bool joined(int z, int from, int to) {
    switch (topology_.zones[z].routing) {
      case Routing::cluster: return true;
      case Routing::none: return from == to;
      case Routing::full: return from == to || edges_[z].contains(key(from, to));
      case Routing::shortest_path: return from == to || reached_from(z, from).contains(to);
    }
    return false;
  }

  using Neighbours = std::unordered_map<int, std::vector<int>>;

  Neighbours neighbours(int z, bool forwards) const {
    Neighbours out;
    for (const RouteEdge& edge : topology_.zones[z].edges)
      forwards ? out[edge.from].push_back(edge.to) : out[edge.to].push_back(edge.from);
    return out;
  }

  static std::unordered_set<int> search(int start, const Neighbours& next_to) {
    std::unordered_set<int> seen = {start};
    std::vector<int> open = {start};
    while (!open.empty()) {
      const auto found = next_to.find(open.back());
      open.pop_back();
      if (found == next_to.end()) continue;
      for (const int next : found->second)
        if (seen.insert(next).second) open.push_back(next);
    }
    return seen;
  }

  const std::unordered_set<int>& reached_from(int z, int start) {
    const auto [found, fresh] = reached_.try_emplace(key(z, start));
    if (!fresh) return found->second;
    const auto [successors, first_in_zone] = successors_.try_emplace(z);
    if (first_in_zone) successors->second = neighbours(z, true);
    return found->second = search(start, successors->second);
  }

  // A route between zones begins and ends at gateways, which the hosts have to reach inside their zone.
  void check_gateways(int z) {
    std::set<std::pair<int, int>> out_of, into;  // (zone, gateway)
    for (const RouteEdge& edge : topology_.zones[z].edges) {
      if (edge.gateway_from < 0) continue;
      if (out_of.emplace(edge.from, edge.gateway_from).second)
        for_hosts(edge.from, [&](int host) { require(edge, host, edge.gateway_from); });
      if (into.emplace(edge.to, edge.gateway_to).second)
        for_hosts(edge.to, [&](int host) { require(edge, edge.gateway_to, host); });
    }
    if (topology_.zones[z].routing != Routing::shortest_path) return;
    for (const RouteEdge& in : topology_.zones[z].edges)  // a path may cross a zone from gateway to gateway
      for (const auto& [zone, gateway] : out_of)
        if (zone == in.to) require(in, in.gateway_to, gateway);
  }

  template <class Visit>
  void for_hosts(int zone, Visit visit) const {
    for (const int point : topology_.zones[zone].points)
      if (topology_.points[point].is_host) visit(point);
    for (const int child : topology_.zones[zone].zones) for_hosts(child, visit);
  }

  void require(const RouteEdge& edge, int from, int to) {
    if (!reaches(from, to))
      xml_.fail(edge.node, fmt::format("no route from {} to {} inside their zone, as this route between zones needs",
                                       quote(topology_.points[from].name), quote(topology_.points[to].name)));
  }

  // Whether a message gets from one point to another, as SimGrid would find the way: through the innermost zone around
  // both, and the gateways of its route.
  bool reaches(int from, int to) {
    if (from == to) return true;
    const int from_zone = topology_.points[from].zone;
    const int to_zone = topology_.points[to].zone;
    if (from_zone == to_zone) return joined(from_zone, from, to);
    int outer = from_zone;
    int a = from_zone;
    while (!topology_.within(to_zone, outer)) {
      a = outer;
      outer = topology_.zones[outer].parent;
    }
    int b = to_zone;
    while (topology_.zones[b].parent != outer) b = topology_.zones[b].parent;
    if (topology_.zones[outer].routing != Routing::full) return joined(outer, a, b);
    const auto found = edges_[outer].find(key(a, b));
    return found != edges_[outer].end() && reaches(from, found->second->gateway_from) &&
           reaches(found->second->gateway_to, to);
  }

  const XmlSource& xml_;
  const Topology& topology_;
  std::vector<std::unordered_map<std::uint64_t, const RouteEdge*>> edges_;  // by zone
  std::vector<int> hosts_in_;                                               // by zone
  std::map<int, Neighbours> successors_;                                    // by zone
  std::map<std::uint64_t, std::unordered_set<int>> reached_;                // by zone and start
};

}  // namespace

void check_reachability(const XmlSource& xml, const Topology& topology) { Checker(xml, topology).check(); }

}  // namespace epocast
