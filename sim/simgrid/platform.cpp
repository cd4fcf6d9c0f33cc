#include "sim/simgrid/platform.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/simgrid/redundant_links.hpp"

namespace epocast {

SimPlatform::SimPlatform(std::string path, const NetworkGraph* graph, NetworkCorrection correction)
    : path_(std::move(path)), graph_(graph), correction_(correction) {
  if (graph_ != nullptr) take(*graph_);
  if (graph_ == nullptr || !graph_->sure) load();
}

void SimPlatform::take(const NetworkGraph& graph) {
  hosts_ = graph.hosts;
  index_hosts();
  links_.reserve(graph.links.size());
  std::vector<LinkCapacity> capacities;
  capacities.reserve(graph.links.size());
  for (const NetworkGraph::Link& link : graph.links) {
    links_.push_back({&link.name, link.latency, link.bandwidth * correction_.efficiency, link.sharing});
    capacities.push_back({links_.back().bandwidth, link.sharing == LinkSharing::kShared});
  }
  shortest_.emplace();
  for (const NetworkGraph::Way& way : graph.ways) shortest_->connect(way.from, way.to, way.link);
  for (int host = 0; host < host_count(); ++host) shortest_->mark_end(static_cast<std::uint32_t>(host));
  redundant_ = find_redundant_links(*shortest_, capacities, graph.turning_point >= 0);
}

SimGrid& SimPlatform::simgrid() {
  if (simgrid_ != nullptr) return *simgrid_;
  if (graph_ == nullptr || !graph_->sure) {
    load();
    return *simgrid_;
  }
  SimGrid& simgrid = load_simgrid();
  simgrid.load(*graph_, [this](int src, int dst) -> const std::vector<int>& { return route(src, dst).links; });
  simgrid_ = &simgrid;
  for (int link = 0; link < link_count(); ++link) set_bandwidth(link, links_[static_cast<std::size_t>(link)].bandwidth);
  return *simgrid_;
}

void SimPlatform::load() {
  // SimGrid exits on a directory, and crashes on a platform without any zone.
  if (!std::filesystem::is_regular_file(path_)) throw std::runtime_error(path_ + ": no such file");
  SimGrid& simgrid = load_simgrid();
  simgrid.load(path_);
  simgrid_ = &simgrid;
  take_hosts();
  take_links();
}

void SimPlatform::take_hosts() {
  if (graph_ != nullptr && simgrid_->hosts() != hosts_) throw std::logic_error(path_ + ": SimGrid reads other hosts");
  if (graph_ != nullptr) return;
  hosts_ = simgrid_->hosts();
  index_hosts();
}

void SimPlatform::take_links() {
  const std::vector<SimGrid::Link>& read = simgrid_->links();
  if (graph_ != nullptr && read.size() != links_.size()) throw std::logic_error(path_ + ": SimGrid reads other links");
  for (std::size_t number = 0; number < read.size(); ++number) {
    const auto& [name, latency, bandwidth, sharing] = read[number];
    const Link link{&name, latency, bandwidth * correction_.efficiency, sharing};
    if (graph_ == nullptr) {
      links_.push_back(link);
    } else if (const Link& known = links_[number]; name != *known.name || latency != known.latency ||
                                                   link.bandwidth != known.bandwidth || sharing != known.sharing) {
      throw std::logic_error(path_ + ": SimGrid reads link " + name + " otherwise");
    }
    set_bandwidth(static_cast<int>(number), link.bandwidth);
  }
}

void SimPlatform::index_hosts() {
  host_index_.reserve(hosts_.size());
  for (int host = 0; host < host_count(); ++host) host_index_.emplace(host_name(host), host);
}

Route SimPlatform::make_route(std::vector<int> links) const {
  Route route;
  route.latency = correction_.message_overhead;
  route.bandwidth = std::numeric_limits<double>::infinity();
  for (const int link : links) {
    route.latency += links_[static_cast<std::size_t>(link)].latency;
    route.bandwidth = std::min(route.bandwidth, links_[static_cast<std::size_t>(link)].bandwidth);
  }
  route.links = std::move(links);
  return route;
}

Route SimPlatform::route_by_simgrid(int src, int dst) {
  try {
    if (simgrid_ == nullptr) load();
    return make_route(simgrid_->route(src, dst));
  } catch (const std::exception& error) {
    throw std::runtime_error("route from " + host_name(src) + " to " + host_name(dst) + ": " + error.what());
  }
}

std::optional<std::vector<int>> SimPlatform::way(int from, int to) {
  return shortest_->find(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to));
}

std::optional<std::vector<int>> SimPlatform::way_to_itself(int host) {
  const int turning_point = graph_->turning_point;
  if (turning_point < 0) return std::nullopt;
  auto there = way(host, turning_point);
  const auto back = way(turning_point, host);
  if (!there || !back) return std::nullopt;
  there->insert(there->end(), back->begin(), back->end());
  return there;
}

const Route& SimPlatform::route(int src, int dst) {
  const std::uint64_t key = pair_key(src, dst);
  if (const Route* const known = routes_.find(key)) return *known;
  if (graph_ != nullptr && src == dst && graph_->loopback >= 0) return routes_.add(key, make_route({graph_->loopback}));
  if (shortest_)
    if (auto found = src == dst ? way_to_itself(src) : way(src, dst)) {
      Route route = make_route(std::move(*found));
      std::ranges::copy_if(route.links, std::back_inserter(route.narrow),
                           [this](int link) { return !redundant_[static_cast<std::size_t>(link)]; });
      if (route.narrow.size() == route.links.size()) route.narrow = {};
      return routes_.add(key, std::move(route));
    }
  if (graph_ != nullptr && graph_->sure)
    throw std::runtime_error("route from " + host_name(src) + " to " + host_name(dst) + ": no link");
  return routes_.add(key, route_by_simgrid(src, dst));
}

void SimPlatform::set_bandwidth(int link, double bandwidth) {
  simgrid_->set_bandwidth(link, bandwidth * kQuantaPerByte);
}

int SimPlatform::find_host(std::string_view name) const {
  const auto found = host_index_.find(name);
  return found == host_index_.end() ? -1 : found->second;
}

}  // namespace epocast
