#include "platforms/boards.hpp"

#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "platforms/topology.hpp"
#include "sim/input_record.hpp"

namespace epocast {
namespace {

/// The innermost of a property's values for a host; null if there is none.
const Property* find(const Topology& topology, const Point& host, const std::string& key) {
  if (const auto own = topology.host_properties.find(host.node); own != topology.host_properties.end())
    if (const auto found = own->second.find(key); found != own->second.end()) return &found->second;
  for (int z = host.zone; z >= 0; z = topology.zones[z].parent)
    if (const auto found = topology.zones[z].properties.find(key); found != topology.zones[z].properties.end())
      return &found->second;
  return nullptr;
}

double read_share(const XmlSource& xml, const Property& property) {
  char* end = nullptr;
  const double share = std::strtod(property.value.c_str(), &end);
  if (property.value.empty() || *end != '\0' || !(share >= 0.01 && share <= 1))
    xml.fail(property.node, "value", "expected a number from 0.01 to 1, got " + quote(property.value));
  return share;
}

}  // namespace

void check_boards(const XmlSource& xml, const Topology& topology) {
  const auto check = [&](const Properties& properties) {
    if (const auto found = properties.find("epocast.shared_speed"); found != properties.end())
      read_share(xml, found->second);
  };
  for (const Zone& zone : topology.zones) check(zone.properties);
  for (const auto& [host, properties] : topology.host_properties) check(properties);
}

std::vector<double> board_slowdown(const Cluster& cluster, std::span<const DeviceId> workers) {
  const InputRecord::Pause again;  // the platform was read before
  std::string text = XmlSource::read_file(cluster.platform_file);
  if (text.find("epocast.board\"") == std::string::npos) return {};
  const XmlSource xml(std::move(text), cluster.platform_file.string());
  const Topology topology = read_topology(xml);
  std::vector<std::string> board;  // by device; empty: a board of its own
  std::vector<double> share;
  for (const Point& point : topology.points) {
    if (!point.is_host) continue;
    const Property* name = find(topology, point, "epocast.board");
    const Property* speed = find(topology, point, "epocast.shared_speed");
    board.push_back(name == nullptr ? "" : name->value);
    share.push_back(speed == nullptr ? 1 : read_share(xml, *speed));
  }
  std::map<std::pair<std::string, std::string>, int> training;  // by node and board
  const auto place = [&](std::size_t d) { return std::pair(cluster.devices[d].node, board[d]); };
  for (const DeviceId worker : workers) ++training[place(static_cast<std::size_t>(worker))];
  std::vector<double> slowdown(board.size(), 1);
  for (const DeviceId worker : workers)
    if (const auto d = static_cast<std::size_t>(worker); !board[d].empty() && training[place(d)] > 1)
      slowdown[d] = 1 / share[d];
  return slowdown;
}

}  // namespace epocast
