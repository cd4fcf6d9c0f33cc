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

/// That each such zone of SimGrid has (docs: network/loopback-bw, network/loopback-lat).
const NetworkGraph::Link kLoopback{"__loopback__", 0, 10e9, LinkSharing::kFatpipe};

class GraphReader {
 public:
  explicit GraphReader(const Topology& topology) : topology_(topology), zone_(topology.zones.front()) {}

  std::shared_ptr<const NetworkGraph> read(bool sure) {
    graph_.sure = sure;
    number_points();
    for (const pugi::xml_node link : zone_.node.children("link")) add_link(link);
    graph_.links.push_back(kLoopback);
    sort_links();
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

  void sort_links() {
    std::ranges::sort(graph_.links, {}, &NetworkGraph::Link::name);
    link_index_.reserve(graph_.links.size());
    for (std::size_t i = 0; i < graph_.links.size(); ++i)
      link_index_.emplace(graph_.links[i].name, static_cast<int>(i));
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

}  // namespace

std::shared_ptr<const NetworkGraph> read_network_graph(const XmlSource& xml, const Topology& topology) {
  if (topology.zones.size() != 1 || !is_dijkstra(topology.zones.front())) return nullptr;
  return GraphReader(topology).read(reads_alike(xml));
}

}  // namespace epocast
