#include "sim/simgrid/platform.hpp"

#include <xbt/log.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <limits>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "sim/simgrid/redundant_links.hpp"

namespace epocast {

namespace s4u = ::simgrid::s4u;

namespace {

LinkSharing sharing_of(const s4u::Link& link) {
  switch (link.get_sharing_policy()) {
    case s4u::Link::SharingPolicy::SHARED: return LinkSharing::kShared;
    case s4u::Link::SharingPolicy::FATPIPE: return LinkSharing::kFatpipe;
    default: return LinkSharing::kOther;
  }
}

s4u::Engine* start_simgrid() {
  xbt_log_control_set("root.thresh:critical root.fmt:%m%n");
  const auto interrupt_handler = std::signal(SIGINT, SIG_DFL);
  auto* const engine = new s4u::Engine("epocast");
  std::signal(SIGINT, interrupt_handler);  // SimGrid's own prints its actors and exits with 1
  // CM02 without the TCP corrections is bytes/bandwidth exactly. All this has to come before the platform.
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:0");
  return engine;
}

}  // namespace

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
  redundant_ = find_redundant_links(*shortest_, capacities);
}

s4u::Engine& SimPlatform::simgrid() {
  if (engine_ == nullptr) load();
  return *engine_;
}

void SimPlatform::load() {
  // SimGrid exits on a directory, and crashes on a platform without any zone.
  if (!std::filesystem::is_regular_file(path_)) throw std::runtime_error(path_ + ": no such file");
  engine_ = start_simgrid();
  static std::vector<s4u::Host*> created;
  s4u::Host::on_creation_cb([](s4u::Host& host) { created.push_back(&host); });
  try {
    engine_->load_platform(path_);
  } catch (const std::exception& error) {
    std::string message = error.what();
    constexpr std::string_view kPrefix = "Parse error at ";
    if (message.starts_with(kPrefix)) message.erase(0, kPrefix.size());
    throw std::runtime_error(message);
  }
  take_hosts(created);
  take_links();
  engine_->seal_platform();
}

void SimPlatform::take_hosts(const std::vector<s4u::Host*>& created) {
  std::vector<std::string> names;
  std::unordered_set<const s4u::Host*> known;
  for (s4u::Host* host : created) {
    if (!known.insert(host).second) continue;  // some kinds of zones announce their hosts twice
    host_handles_.push_back(host);
    names.push_back(host->get_name());
  }
  if (names.empty()) throw std::runtime_error(path_ + ": a platform without hosts");
  if (graph_ != nullptr && names != hosts_) throw std::logic_error(path_ + ": SimGrid reads other hosts");
  if (graph_ != nullptr) return;
  hosts_ = std::move(names);
  index_hosts();
}

void SimPlatform::take_links() {
  std::vector<std::pair<std::string_view, s4u::Link*>> by_name;  // asking for a name is slow
  for (s4u::Link* link : engine_->get_all_links()) by_name.emplace_back(link->get_name(), link);
  // They come in that order zone by zone.
  const auto rest = std::ranges::is_sorted_until(by_name);
  std::ranges::sort(rest, by_name.end());
  std::ranges::inplace_merge(by_name, rest);
  if (graph_ != nullptr && by_name.size() != links_.size())
    throw std::logic_error(path_ + ": SimGrid reads other links");
  link_index_.reserve(by_name.size());
  for (const auto& [name, link] : by_name) {
    const std::size_t number = link_handles_.size();
    if (!(link->get_bandwidth() > 0 && link->get_latency() >= 0))
      throw std::runtime_error("link " + std::string(name) + ": bandwidth is not positive or latency is negative");
    const Link read{&link->get_name(), link->get_latency(), link->get_bandwidth() * correction_.efficiency,
                    sharing_of(*link)};
    if (graph_ == nullptr) {
      links_.push_back(read);
    } else if (const Link& known = links_[number]; name != *known.name || read.latency != known.latency ||
                                                   read.bandwidth != known.bandwidth || read.sharing != known.sharing) {
      throw std::logic_error(path_ + ": SimGrid reads link " + std::string(name) + " otherwise");
    }
    link_index_.emplace(link, static_cast<int>(number));
    link_handles_.push_back(link);
    link->set_latency(0);  // the caller charges it
    link->set_bandwidth(links_[number].bandwidth * kQuantaPerByte);
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
  simgrid();
  std::vector<s4u::Link*> handles;
  double extra_latency = 0;
  const auto fail = [&](const std::string& problem) {
    throw std::runtime_error("route from " + host_name(src) + " to " + host_name(dst) + ": " + problem);
  };
  try {
    handle(src)->route_to(handle(dst), handles, &extra_latency);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  if (handles.empty()) fail("no link");
  if (extra_latency != 0) fail("latency that belongs to no link");  // Vivaldi coordinates; flows would pay it
  std::vector<int> links;
  for (const s4u::Link* link : handles) links.push_back(link_index_.at(link));
  return make_route(std::move(links));
}

const Route& SimPlatform::route(int src, int dst) {
  const std::uint64_t key = pair_key(src, dst);
  if (const Route* const known = routes_.find(key)) return *known;
  if (graph_ != nullptr && src == dst && graph_->loopback >= 0) return routes_.add(key, make_route({graph_->loopback}));
  if (shortest_ && src != dst)
    if (auto found = shortest_->find(static_cast<std::uint32_t>(src), static_cast<std::uint32_t>(dst))) {
      Route route = make_route(std::move(*found));
      std::ranges::copy_if(route.links, std::back_inserter(route.narrow),
                           [this](int link) { return !redundant_[static_cast<std::size_t>(link)]; });
      if (route.narrow.size() == route.links.size()) route.narrow = {};
      return routes_.add(key, std::move(route));
    }
  return routes_.add(key, route_by_simgrid(src, dst));
}

void SimPlatform::set_bandwidth(int link, double bandwidth) {
  link_handles_.at(static_cast<std::size_t>(link))->set_bandwidth(bandwidth * kQuantaPerByte);
}

int SimPlatform::find_host(std::string_view name) const {
  const auto found = host_index_.find(name);
  return found == host_index_.end() ? -1 : found->second;
}

}  // namespace epocast
