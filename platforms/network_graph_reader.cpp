#include "platforms/network_graph_reader.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "platforms/units.hpp"

namespace epocast {

namespace {

bool is_dijkstra(const Zone& zone) {
  std::string routing = zone.node.attribute("routing").value();
  std::ranges::transform(routing, routing.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return routing == "dijkstra" || routing == "dijkstracache";
}

/// SimGrid's reader is particular about what stands around the elements and in their attributes.
bool reads_alike(const XmlSource& xml) {
  return xml.text().starts_with("<?xml version=\"1.0\"?>") && xml.text().find('&') == std::string_view::npos &&
         xml.text().find("<![CDATA[") == std::string_view::npos &&
         std::string_view(xml.doctype().value()) == "platform SYSTEM \"https://simgrid.org/simgrid.dtd\"";
}

/// That SimGrid's network has (docs: network/loopback-bw, network/loopback-lat); in stars nothing crosses it.
const NetworkGraph::Link kLoopback{"__loopback__", 0, 10e9, LinkSharing::kFatpipe};

/// Sorts the links by name; the index of each.
std::unordered_map<std::string_view, int> sort_links(std::vector<NetworkGraph::Link>& links) {
  std::ranges::sort(links, {}, &NetworkGraph::Link::name);
  std::unordered_map<std::string_view, int> index;
  index.reserve(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) index.emplace(links[i].name, static_cast<int>(i));
  return index;
}

class GraphReader {
 public:
  explicit GraphReader(const Topology& topology) : topology_(topology), zone_(topology.zones.front()) {}

  std::shared_ptr<const NetworkGraph> read(bool sure) {
    graph_.sure = sure;
    number_points();
    for (const pugi::xml_node link : zone_.node.children("link")) add_link(link);
    graph_.links.push_back(kLoopback);
    link_index_ = sort_links(graph_.links);
    graph_.loopback = link_index_.at(kLoopback.name);
    pugi::xml_node before;
    for (const RouteEdge& edge : zone_.edges) {
      const pugi::xml_node use = edge.node.first_child();
      if (use.next_sibling() || edge.from == edge.to) return nullptr;
      const bool back = edge.node == before;  // the other direction follows its route
      before = edge.node;
      add_way(edge, use, back);
    }
    return std::make_shared<NetworkGraph>(std::move(graph_));
  }

 private:
  void number_points() {
    number_.resize(topology_.points.size());
    std::uint32_t next = 0;
    for (const bool hosts : {true, false})
      for (std::size_t p = 0; p < topology_.points.size(); ++p)
        if (topology_.points[p].is_host == hosts) {
          number_[p] = next++;
          if (hosts) graph_.hosts.push_back(topology_.points[p].name);
        }
  }

  void add_link(pugi::xml_node node) {
    const std::string name = node.attribute("id").value();
    const double bandwidth = parse_simgrid_bandwidth(node.attribute("bandwidth").value()).value;
    const double latency = parse_simgrid_latency(node.attribute("latency").value()).value;
    const std::string_view policy = node.attribute("sharing_policy").as_string("SHARED");
    const LinkSharing sharing = policy == "FATPIPE" ? LinkSharing::kFatpipe : LinkSharing::kShared;
    if (policy == "SPLITDUPLEX" || policy == "FULLDUPLEX") {
      graph_.links.push_back({name + "_UP", latency, bandwidth, sharing});
      graph_.links.push_back({name + "_DOWN", latency, bandwidth, sharing});
    } else {
      graph_.links.push_back({name, latency, bandwidth, sharing});
    }
  }

  void add_way(const RouteEdge& edge, pugi::xml_node use, bool back) {
    std::string link = use.attribute("id").value();
    const std::string_view direction = use.attribute("direction").as_string("NONE");
    if (direction != "NONE") link += (direction == "UP") == back ? "_DOWN" : "_UP";
    graph_.ways.push_back({number_[static_cast<std::size_t>(edge.from)], number_[static_cast<std::size_t>(edge.to)],
                           link_index_.at(link)});
  }

  const Topology& topology_;
  const Zone& zone_;
  NetworkGraph graph_;
  std::vector<std::uint32_t> number_;  // of points, by their place in the topology
  std::unordered_map<std::string_view, int> link_index_;
};

/// The innermost zone, if those around it have nothing but the next one: `zones` has parents before children.
const Zone* only_zone(const std::vector<Zone>& zones) {
  for (std::size_t outer = 0; outer + 1 < zones.size(); ++outer)
    for (const pugi::xml_node child : zones[outer].node.children())
      if (std::string_view(child.name()) != "prop" && child != zones[outer + 1].node) return nullptr;
  return &zones.back();
}

bool is_star(const Zone& zone) {
  return std::string_view(zone.node.name()) == "cluster" &&
         std::string_view(zone.node.attribute("topology").as_string("FLAT")) == "FLAT";
}

/// Whether a star has nothing but a pair of links for each host and a backbone that is described in full.
bool is_plain(pugi::xml_node star) {
  for (const char* attribute : {"limiter_link", "loopback_bw", "loopback_lat"})
    if (!star.attribute(attribute).empty()) return false;
  return std::string_view(star.attribute("sharing_policy").as_string("SPLITDUPLEX")) == "SPLITDUPLEX" &&
         star.attribute("bb_bw").empty() == star.attribute("bb_lat").empty();
}

/// Two links for each host, between it and a switch; or two switches with a backbone from the first to the second. Null
/// for others than plain ones.
std::shared_ptr<const NetworkGraph> read_star(const Topology& topology, const Zone& zone, bool sure) {
  const pugi::xml_node node = zone.node;
  if (!is_plain(node)) return nullptr;
  NetworkGraph graph;
  graph.sure = sure;
  const double bandwidth = parse_simgrid_bandwidth(node.attribute("bw").value()).value;
  const double latency = parse_simgrid_latency(node.attribute("lat").value()).value;
  const std::string prefix = node.attribute("prefix").value(), suffix = node.attribute("suffix").value();
  std::vector<std::string> cables;
  for (const int point : zone.points) {
    const auto& [name, in_zone, is_host, from] = topology.points[static_cast<std::size_t>(point)];
    if (!is_host) continue;
    graph.hosts.push_back(name);
    cables.push_back(zone.name + "_link_" + name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
    for (const char* way : {"_UP", "_DOWN"})
      graph.links.push_back({cables.back() + way, latency, bandwidth, LinkSharing::kShared});
  }
  graph.links.push_back(kLoopback);
  const std::string backbone = zone.name + "_backbone";
  const bool has_backbone = !node.attribute("bb_bw").empty();
  if (has_backbone)
    graph.links.push_back({backbone, parse_simgrid_latency(node.attribute("bb_lat").value()).value,
                           parse_simgrid_bandwidth(node.attribute("bb_bw").value()).value,
                           std::string_view(node.attribute("bb_sharing_policy").value()) == "FATPIPE"
                               ? LinkSharing::kFatpipe
                               : LinkSharing::kShared});
  const std::unordered_map<std::string_view, int> index = sort_links(graph.links);
  const auto first = static_cast<std::uint32_t>(graph.hosts.size()), last = first + (has_backbone ? 1 : 0);
  for (std::uint32_t host = 0; host < first; ++host) {
    graph.ways.push_back({host, first, index.at(cables[host] + "_UP")});
    graph.ways.push_back({last, host, index.at(cables[host] + "_DOWN")});
  }
  if (has_backbone) graph.ways.push_back({first, last, index.at(backbone)});
  graph.turning_point = static_cast<int>(last);
  return std::make_shared<NetworkGraph>(std::move(graph));
}

}  // namespace

std::shared_ptr<const NetworkGraph> read_network_graph(const XmlSource& xml, const Topology& topology) {
  if (const Zone* const zone = only_zone(topology.zones); zone != nullptr && is_star(*zone))
    return read_star(topology, *zone, reads_alike(xml));
  if (topology.zones.size() != 1 || !is_dijkstra(topology.zones.front())) return nullptr;
  return GraphReader(topology).read(reads_alike(xml));
}

}  // namespace epocast
