#include "platforms/topology.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "platforms/schema.hpp"
#include "platforms/units.hpp"
#include "sim/config.hpp"

namespace epocast {

namespace {

constexpr int kMostHosts = 1 << 20;  // more is a typing error, and would exhaust the memory
constexpr int kDeepestZone = 16;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    out.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return out;
    begin = end + 1;
  }
}

std::optional<int> parse_count(std::string_view text) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

class Reader {
 public:
  explicit Reader(const XmlSource& xml) : xml_(xml) {}

  Topology read() {
    check_document(xml_);
    const pugi::xml_node root = xml_.root();
    check_element(xml_, root);
    const pugi::xml_node outer = root.first_child();
    if (!outer) xml_.fail(root, "the platform is empty: it needs a <zone> or <cluster> with hosts");
    if (const pugi::xml_node second = outer.next_sibling())
      xml_.fail(second, "SimGrid takes one outer zone only: put all into one <zone>");
    read_child(outer, -1, 0);
    if (hosts_ == 0) xml_.fail(outer, "the platform has no hosts; add <host> elements or a <cluster>");
    return std::move(out_);
  }

 private:
  template <class Parse>
  void check_number(pugi::xml_node node, const char* attribute, Parse parse) const {
    if (!node.attribute(attribute)) return;
    try {
      parse(node.attribute(attribute).value());
    } catch (const std::invalid_argument& error) {
      xml_.fail(node, attribute, error.what());
    }
  }

  std::string one_of(pugi::xml_node node, const char* attribute, const char* fallback,
                     std::initializer_list<const char*> values) const {
    const std::string value = node.attribute(attribute).as_string(fallback);
    if (std::ranges::find(values, value) == values.end())
      xml_.fail(
          node, attribute,
          "unknown value " + quote(value) + name_hint(value, std::vector<std::string>(values.begin(), values.end())));
    return value;
  }

  void read_child(pugi::xml_node node, int parent, int depth) {
    const std::string_view tag = node.name();
    check_element(xml_, node);
    if (tag == "zone" || tag == "AS") read_zone(node, parent, depth);
    if (tag == "cluster") read_cluster(node, parent);
    if (tag == "host") read_host(node, parent);
    if (tag == "router") add_point(node, node.attribute("id").value(), parent, false);
    if (tag == "link") read_link(node);
    if (tag == "route") read_route(node, parent);
    if (tag == "zoneRoute" || tag == "ASroute") read_zone_route(node, parent);
  }

  int add_zone(pugi::xml_node node, int parent, Routing routing) {
    const int index = static_cast<int>(out_.zones.size());
    Zone zone;
    zone.name = node.attribute("id").value();
    zone.parent = parent;
    zone.routing = routing;
    zone.properties = read_properties(node);
    zone.node = node;
    claim_name(zone.name, node, "id");
    zone_index_.emplace(zone.name, index);
    if (parent >= 0) out_.zones[parent].zones.push_back(index);
    out_.zones.push_back(std::move(zone));
    return index;
  }

  // Zones, hosts and routers share one space of names.
  void claim_name(const std::string& name, pugi::xml_node node, const char* attribute) {
    if (const auto [earlier, fresh] = names_.emplace(name, node); !fresh)
      xml_.fail(node, attribute,
                fmt::format("the name {} is used twice; first by {} in line {}", quote(name), describe(earlier->second),
                            xml_.locate(earlier->second).line));
  }

  void read_zone(pugi::xml_node node, int parent, int depth) {
    if (depth > kDeepestZone) xml_.fail(node, fmt::format("zones are nested deeper than {}", kDeepestZone));
    const int index = add_zone(node, parent, read_routing(node));
    for (const pugi::xml_node child : node.children()) read_child(child, index, depth + 1);
  }

  Routing read_routing(pugi::xml_node node) const {
    const std::string value = node.attribute("routing").value();
    for (const auto& [name, routing] : {std::pair{"Full", Routing::full},
                                        {"Floyd", Routing::shortest_path},
                                        {"Dijkstra", Routing::shortest_path},
                                        {"DijkstraCache", Routing::shortest_path},
                                        {"None", Routing::none}})
      if (equal_ignoring_case(value, name)) return routing;  // as SimGrid does
    const std::vector<std::string> names = {"Full", "Floyd", "Dijkstra", "DijkstraCache", "None"};
    if (equal_ignoring_case(value, "Cluster"))
      xml_.fail(node, "routing", "routing 'Cluster' is not supported; write the hosts as one <cluster> element");
    xml_.fail(node, "routing", "unknown routing " + quote(value) + name_hint(value, names));
  }

  Properties read_properties(pugi::xml_node node) const {
    static const std::vector<std::string> known = {
        "epocast.description",    "epocast.device_model",   "epocast.peak_rate",        "epocast.peak_rate_fp16",
        "epocast.peak_rate_bf16", "epocast.peak_rate_tf32", "epocast.peak_rate_fp8",    "epocast.memory",
        "epocast.cores",          "epocast.node",           "epocast.memory_bandwidth", "epocast.board",
        "epocast.shared_speed",   "epocast.trains",         "epocast.kernels_like",     "epocast.product_share"};
    Properties out;
    for (const pugi::xml_node prop : node.children("prop")) {
      check_element(xml_, prop);
      const std::string id = prop.attribute("id").value();
      if (id.starts_with("epocast.") && std::ranges::find(known, id) == known.end())
        xml_.fail(prop, "id", "unknown property of epocast" + name_hint(id, known));
      if (!out.emplace(id, Property{prop.attribute("value").value(), prop}).second)
        xml_.fail(prop, "id", "property given twice");
    }
    return out;
  }

  void add_point(pugi::xml_node node, const std::string& name, int zone, bool is_host) {
    claim_name(name, node, node.attribute("id") && name == node.attribute("id").value() ? "id" : "radical");
    if (is_host && ++hosts_ > kMostHosts)
      xml_.fail(node, fmt::format("more than {} hosts in this platform", kMostHosts));
    const int index = static_cast<int>(out_.points.size());
    point_index_.emplace(name, index);
    out_.zones[zone].points.push_back(index);
    out_.points.push_back({name, zone, is_host, node});
  }

  void check_compute(pugi::xml_node node) const {
    if (std::string_view(node.attribute("speed").value()).find(',') != std::string_view::npos)
      xml_.fail(node, "speed", "a list of speeds is not supported: give the one to simulate");
    check_number(node, "speed", parse_simgrid_speed);
    if (const auto core = node.attribute("core"))
      if (const auto count = parse_count(core.value()); !count || *count < 1 || *count > 100000)
        xml_.fail(node, "core", "expected a number of cores from 1 to 100000, got " + quote(core.value()));
  }

  void read_host(pugi::xml_node node, int zone) {
    check_compute(node);
    add_point(node, node.attribute("id").value(), zone, true);
    out_.host_properties.emplace(node, read_properties(node));
  }

  void read_link(pugi::xml_node node) {
    check_number(node, "bandwidth", parse_simgrid_bandwidth);
    check_number(node, "latency", parse_simgrid_latency);
    const std::string policy =
        one_of(node, "sharing_policy", "SHARED", {"SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE"});
    const std::string_view name = node.attribute("id").value();
    if (name == "__loopback__")
      xml_.fail(node, "id", "SimGrid gives this name to a host's way to itself: choose another");
    const bool duplex = policy == "SPLITDUPLEX" || policy == "FULLDUPLEX";
    if (const std::string twice = defined_already(name, duplex); !twice.empty())
      xml_.fail(node, "id", "the link " + quote(twice) + " is defined twice");
    (duplex ? duplex_links_ : single_links_).insert(name);
    if (!node.first_child()) return;
    for (const auto& [id, property] : read_properties(node))
      if (id.starts_with("source."))
        out_.link_sources.emplace("link[" + std::string(name) + "]." + id.substr(7), property);
  }

  /// A split-duplex link is two for SimGrid. Which of those that this one would make there is already; "" for none.
  std::string defined_already(std::string_view name, bool duplex) const {
    if (!duplex && single_links_.contains(name)) return std::string(name);
    if (!duplex) {
      for (const std::string_view way : {"_UP", "_DOWN"})
        if (name.ends_with(way) && duplex_links_.contains(name.substr(0, name.size() - way.size())))
          return std::string(name);
      return "";
    }
    if (duplex_links_.contains(name)) return std::string(name) + "_UP";
    if (single_links_.empty()) return "";
    for (const char* way : {"_UP", "_DOWN"})
      if (std::string link = std::string(name) + way; single_links_.contains(link)) return link;
    return "";
  }

  bool read_symmetrical(pugi::xml_node node) const {
    const std::string value = one_of(node, "symmetrical", "YES", {"YES", "NO", "yes", "no"});
    return value == "YES" || value == "yes";
  }

  void check_links(pugi::xml_node route) const {
    if (!route.first_child()) xml_.fail(route, "the route has no links: SimGrid wants at least one <link_ctn>");
    for (const pugi::xml_node use : route.children()) {
      check_element(xml_, use);
      const std::string_view name = use.attribute("id").value();
      const std::string direction = one_of(use, "direction", "NONE", {"UP", "DOWN", "NONE"});
      if (duplex_links_.contains(name)) {
        if (direction == "NONE")
          xml_.fail(use, "the link " + quote(name) + " is split-duplex: say direction=\"UP\" or direction=\"DOWN\"");
      } else if (!single_links_.contains(name) && defined_already(name, false).empty()) {
        std::vector<std::string> names(single_links_.begin(), single_links_.end());
        names.insert(names.end(), duplex_links_.begin(), duplex_links_.end());
        std::ranges::sort(names);
        xml_.fail(use, "id", "no link of this name is defined before this route" + name_hint(std::string(name), names));
      } else if (direction != "NONE") {
        xml_.fail(use, "direction", "the link " + quote(name) + " is not split-duplex: remove the direction");
      }
    }
  }

  void add_edges(pugi::xml_node node, int zone, RouteEdge edge) {
    const Routing routing = out_.zones[zone].routing;
    if (routing == Routing::none) xml_.fail(node, "a zone with routing=\"None\" has no routes; write routing=\"Full\"");
    const auto add = [&](const RouteEdge& directed) {
      const std::uint64_t key =
          (static_cast<std::uint64_t>(directed.from) << 32) | static_cast<std::uint32_t>(directed.to);
      if (const auto [earlier, fresh] = edge_lines_[zone].emplace(key, node); !fresh)
        xml_.fail(node, fmt::format("this route was given before, in line {} (routes hold for both directions unless "
                                    "symmetrical=\"NO\")",
                                    xml_.locate(earlier->second).line));
      out_.zones[zone].edges.push_back(directed);
    };
    edge.node = node;
    add(edge);
    if (read_symmetrical(node) && edge.from != edge.to)
      add({edge.to, edge.from, edge.gateway_to, edge.gateway_from, node});
  }

  int find_point(pugi::xml_node node, const char* attribute, int zone) const {
    const std::string name = node.attribute(attribute).value();
    const auto found = point_index_.find(name);
    if (found != point_index_.end() && out_.points[found->second].zone == zone) return found->second;
    std::vector<std::string> names;
    for (const int point : out_.zones[zone].points) names.push_back(out_.points[point].name);
    xml_.fail(
        node, attribute,
        "no host or router " + quote(name) + " in zone " + quote(out_.zones[zone].name) + short_hint(name, names));
  }

  // name_hint() without a list of ten thousand hosts.
  static std::string short_hint(const std::string& name, const std::vector<std::string>& names) {
    if (names.size() <= 10) return name_hint(name, names);
    const std::string nearest = nearest_name(name, names);
    return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
  }

  void read_route(pugi::xml_node node, int zone) {
    RouteEdge edge;
    edge.from = find_point(node, "src", zone);
    edge.to = find_point(node, "dst", zone);
    check_links(node);
    add_edges(node, zone, edge);
  }

  int find_zone(pugi::xml_node node, const char* attribute, int parent) const {
    const std::string name = node.attribute(attribute).value();
    const auto found = zone_index_.find(name);
    if (found != zone_index_.end() && out_.zones[found->second].parent == parent) return found->second;
    std::vector<std::string> names;
    for (const int zone : out_.zones[parent].zones) names.push_back(out_.zones[zone].name);
    xml_.fail(
        node, attribute,
        "no zone " + quote(name) + " directly in zone " + quote(out_.zones[parent].name) + short_hint(name, names));
  }

  int find_gateway(pugi::xml_node node, const char* attribute, int zone) const {
    const std::string name = node.attribute(attribute).value();
    const auto found = point_index_.find(name);
    if (found != point_index_.end() && out_.within(out_.points[found->second].zone, zone)) return found->second;
    std::vector<std::string> names;
    for (const Point& point : out_.points)
      if (out_.within(point.zone, zone)) names.push_back(point.name);
    xml_.fail(node, attribute,
              "the gateway " + quote(name) + " is no host or router in zone " + quote(out_.zones[zone].name) +
                  short_hint(name, names));
  }

  void read_zone_route(pugi::xml_node node, int parent) {
    RouteEdge edge;
    edge.from = find_zone(node, "src", parent);
    edge.to = find_zone(node, "dst", parent);
    if (edge.from == edge.to) xml_.fail(node, "dst", "a route from a zone to itself");
    edge.gateway_from = find_gateway(node, "gw_src", edge.from);
    edge.gateway_to = find_gateway(node, "gw_dst", edge.to);
    check_links(node);
    add_edges(node, parent, edge);
  }

  // "0-3,7" is 0, 1, 2, 3, 7.
  std::vector<int> expand_radical(pugi::xml_node node) const {
    std::vector<int> out;
    const std::string_view radical = node.attribute("radical").value();
    for (const std::string_view part : split(radical, ',')) {
      const std::size_t dash = part.find('-');
      const auto first = parse_count(part.substr(0, dash));
      const auto last = dash == std::string_view::npos ? first : parse_count(part.substr(dash + 1));
      if (!first || !last)
        xml_.fail(node, "radical", "expected host numbers such as '0-63' or '0-3,8', got " + quote(radical));
      if (*last < *first) xml_.fail(node, "radical", "the range " + quote(part) + " runs backwards and has no hosts");
      if (static_cast<std::int64_t>(out.size()) + *last - *first >= kMostHosts)
        xml_.fail(node, "radical", fmt::format("more than {} hosts in one cluster", kMostHosts));
      for (int i = *first; i <= *last; ++i) out.push_back(i);
    }
    return out;
  }

  void check_loopback(pugi::xml_node node) const {
    const char *bandwidth = "loopback_bw", *latency = "loopback_lat";
    const bool has_bandwidth = !node.attribute(bandwidth).empty(), has_latency = !node.attribute(latency).empty();
    if (has_bandwidth == has_latency) return;
    xml_.fail(node, has_bandwidth ? bandwidth : latency,
              std::string("a loopback needs both: add ") + (has_bandwidth ? latency : bandwidth) + ", or remove this");
  }

  void read_cluster(pugi::xml_node node, int parent) {
    check_compute(node);
    check_number(node, "bw", parse_simgrid_bandwidth);
    check_number(node, "lat", parse_simgrid_latency);
    for (const char* attribute : {"bb_bw", "loopback_bw", "limiter_link"})
      check_number(node, attribute, parse_simgrid_bandwidth);
    for (const char* attribute : {"bb_lat", "loopback_lat"}) check_number(node, attribute, parse_simgrid_latency);
    check_loopback(node);
    one_of(node, "sharing_policy", "SPLITDUPLEX", {"SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE"});
    one_of(node, "bb_sharing_policy", "SHARED", {"SHARED", "FATPIPE"});
    const std::vector<int> radical = expand_radical(node);
    check_shape(node, static_cast<int>(radical.size()));

    const int index = add_zone(node, parent, Routing::cluster);
    const std::string prefix = node.attribute("prefix").value();
    const std::string suffix = node.attribute("suffix").value();
    for (const int number : radical) add_point(node, prefix + std::to_string(number) + suffix, index, true);
    if (std::string_view(node.attribute("topology").as_string("FLAT")) != "FLAT") return;
    // Stars have a router, which can be a gateway; this is SimGrid's own name for it where none is given.
    const std::string router = node.attribute("router_id").value();
    add_point(node, router.empty() ? prefix + out_.zones[index].name + "_router" + suffix : router, index, false);
  }

  void check_shape(pugi::xml_node node, int hosts) const {
    const std::string topology = node.attribute("topology").as_string("FLAT");
    if (topology == "DRAGONFLY")
      xml_.fail(node, "topology",
                "DRAGONFLY is not supported: SimGrid 3.32 crashes on it; write FAT_TREE, TORUS or zones");
    one_of(node, "topology", "FLAT", {"FLAT", "FAT_TREE", "TORUS"});
    if (topology == "FLAT") return;
    if (!node.attribute("topo_parameters"))
      xml_.fail(node, "topology " + topology + " needs the attribute topo_parameters");
    const std::string parameters = node.attribute("topo_parameters").value();
    const std::int64_t shape =
        topology == "TORUS" ? product(node, parameters, parameters) : fat_tree_hosts(node, parameters);
    if (shape != hosts)
      xml_.fail(node, "topo_parameters",
                fmt::format("{} {} has room for {} hosts, but radical {} names {}", topology, quote(parameters), shape,
                            quote(node.attribute("radical").value()), hosts));
  }

  // Of a comma-separated list of positive integers, which is a part of `whole`.
  std::int64_t product(pugi::xml_node node, std::string_view list, std::string_view whole) const {
    std::int64_t out = 1;
    for (const std::string_view part : split(list, ',')) {
      const auto factor = parse_count(part);
      if (!factor || *factor < 1)
        xml_.fail(node, "topo_parameters", "expected positive integers between commas, got " + quote(whole));
      if ((out *= *factor) > kMostHosts)
        xml_.fail(node, "topo_parameters", fmt::format("room for more than {} hosts", kMostHosts));
    }
    return out;
  }

  // "levels;children per level;parents per level;links per level": the leaves are the product of the children.
  std::int64_t fat_tree_hosts(pugi::xml_node node, std::string_view parameters) const {
    const auto parts = split(parameters, ';');
    const auto levels = parse_count(parts.front());
    if (parts.size() != 4 || !levels || *levels < 1)
      xml_.fail(node, "topo_parameters",
                "expected 'levels;children;parents;links' such as '2;4,4;1,2;1,2', got " + quote(parameters));
    for (const std::string_view part : std::span(parts).subspan(1)) {
      if (static_cast<int>(split(part, ',').size()) != *levels)
        xml_.fail(node, "topo_parameters",
                  fmt::format("expected {} numbers, one a level, in {}", *levels, quote(part)));
      product(node, part, parameters);
    }
    return product(node, parts[1], parameters);
  }

  const XmlSource& xml_;
  Topology out_;
  int hosts_ = 0;
  std::unordered_map<std::string, pugi::xml_node> names_;
  std::unordered_map<std::string, int> zone_index_;
  std::unordered_map<std::string, int> point_index_;
  std::unordered_set<std::string_view> duplex_links_, single_links_;  // as written in the document
  std::unordered_map<int, std::unordered_map<std::uint64_t, pugi::xml_node>> edge_lines_;
};

}  // namespace

bool Topology::within(int zone, int outer) const {
  while (zone >= 0 && zone != outer) zone = zones[zone].parent;
  return zone == outer;
}

Topology read_topology(const XmlSource& xml) { return Reader(xml).read(); }

}  // namespace epocast
