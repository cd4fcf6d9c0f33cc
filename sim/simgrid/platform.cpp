#include "sim/simgrid/platform.hpp"

#include <simgrid/forward.h>  // version.h does not compile alone
#include <simgrid/version.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <numeric>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <typeinfo>
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

}  // namespace

SimPlatform::SimPlatform(s4u::Engine& engine, const std::string& path, NetworkCorrection correction)
    : engine_(engine), correction_(correction) {
  load(engine, path);
  index_links(engine);
  learn_shortest_routes();
}

void SimPlatform::load(s4u::Engine& engine, const std::string& path) {
  // SimGrid exits on a directory, and crashes on a platform without any zone.
  if (!std::filesystem::is_regular_file(path)) throw std::runtime_error(path + ": no such file");
  static std::vector<s4u::Host*> created;
  s4u::Host::on_creation_cb([](s4u::Host& host) { created.push_back(&host); });
#if SIMGRID_VERSION < 33300
  ::simgrid::kernel::routing::NetZoneImpl::on_route_creation.connect(
      [this](bool symmetrical, const auto* from, const auto* to, const auto*, const auto*, const auto& way) {
        connections_.push_back({from, to, way, symmetrical});
      });
#endif
  try {
    engine.load_platform(path);
  } catch (const std::exception& error) {
    std::string message = error.what();
    constexpr std::string_view kPrefix = "Parse error at ";
    if (message.starts_with(kPrefix)) message.erase(0, kPrefix.size());
    throw std::runtime_error(message);
  }
  hosts_.reserve(created.size());  // host_index_ views the names
  for (s4u::Host* host : created) {
    if (host_index_.contains(host->get_name())) continue;  // some kinds of zones announce their hosts_ twice
    hosts_.push_back({host, host->get_name()});
    host_index_.emplace(hosts_.back().name, static_cast<int>(hosts_.size() - 1));
  }
  if (hosts_.empty()) throw std::runtime_error(path + ": a platform without hosts_");
}

void SimPlatform::index_links(s4u::Engine& engine) {
  std::vector<std::pair<std::string_view, s4u::Link*>> by_name;  // asking for a name is slow
  for (s4u::Link* link : engine.get_all_links()) by_name.emplace_back(link->get_name(), link);
  // They come in that order zone by zone.
  const auto rest = std::ranges::is_sorted_until(by_name);
  std::ranges::sort(rest, by_name.end());
  std::ranges::inplace_merge(by_name, rest);
  link_index_.reserve(by_name.size());
  for (const auto& [name, link] : by_name) {
    if (!(link->get_bandwidth() > 0 && link->get_latency() >= 0))
      throw std::runtime_error("link " + std::string(name) + ": bandwidth is not positive or latency is negative");
    link_index_.emplace(link, static_cast<int>(links_.size()));
    links_.push_back({link, link->get_latency(), link->get_bandwidth() * correction_.efficiency, sharing_of(*link)});
    link->set_latency(0);  // the caller charges it
    link->set_bandwidth(links_.back().bandwidth * kQuantaPerByte);
  }
}

/// By link: the one that carries the other direction of the same cable. Links are in the order of their names.
std::vector<int> SimPlatform::find_other_ways() const {
  constexpr std::string_view kDown = "_DOWN", kUp = "_UP";
  std::vector<int> other(links_.size());
  std::iota(other.begin(), other.end(), 0);
  for (int up = 0; up < link_count(); ++up) {
    const std::string_view name = link(up).handle->get_name();
    if (!name.ends_with(kUp)) continue;
    const std::string_view cable = name.substr(0, name.size() - kUp.size());
    // Only names that begin as it does lie between the two.
    for (int down = up - 1; down >= 0; --down) {
      const std::string_view before = link(down).handle->get_name();
      if (!before.starts_with(cable)) break;
      if (before.substr(cable.size()) != kDown) continue;
      other[static_cast<std::size_t>(up)] = down;
      other[static_cast<std::size_t>(down)] = up;
      break;
    }
  }
  return other;
}

/// Takes over the search for routes where SimGrid would go through all of a large network for each source.
void SimPlatform::learn_shortest_routes() {
#if SIMGRID_VERSION < 33300
  const std::vector<Connection> all = std::exchange(connections_, {});
  const s4u::NetZone* const zone = hosts_.front().handle->get_englobing_zone();
  const auto& implementation = *zone->get_impl();
  const std::string_view kind = typeid(implementation).name();
  if (kind.find("DijkstraZone") == std::string_view::npos) return;
  for (const Host& host : hosts_)
    if (host.handle->get_englobing_zone() != zone) return;
  if (std::ranges::any_of(all, [](const Connection& one) { return one.links.size() != 1; })) return;
  std::unordered_map<const void*, int> index;
  index.reserve(links_.size());
  for (int link = 0; link < link_count(); ++link) index.emplace(this->link(link).handle->get_impl(), link);
  const std::vector<int> other_way = find_other_ways();
  ShortestRoutes routes_of_zone;
  const auto id = [](const void* point) { return reinterpret_cast<std::uint64_t>(point); };
  for (const Connection& connection : all) {
    const int there = index.at(connection.links.front()), back = other_way[static_cast<std::size_t>(there)];
    routes_of_zone.connect(id(connection.from), id(connection.to), there);
    if (connection.symmetrical) routes_of_zone.connect(id(connection.to), id(connection.from), back);
  }
  for (const Host& host : hosts_) routes_of_zone.mark_end(id(host.handle->get_netpoint()));
  std::vector<LinkCapacity> capacities;
  for (const Link& link : links_) capacities.push_back({link.bandwidth, link.sharing == LinkSharing::kShared});
  redundant_ = find_redundant_links(routes_of_zone, capacities);
  shortest_ = std::move(routes_of_zone);
#endif
}

Route SimPlatform::compute_route(const s4u::Host& src, const s4u::Host& dst) const {
  Route route;
  route.latency = correction_.message_overhead;
  route.bandwidth = std::numeric_limits<double>::infinity();
  const auto cross = [&](int index) {
    route.links.push_back(index);
    route.latency += links_[static_cast<std::size_t>(index)].latency;
    route.bandwidth = std::min(route.bandwidth, links_[static_cast<std::size_t>(index)].bandwidth);
  };
  if (shortest_ && &src != &dst) {
    const auto id = [](const s4u::Host& host) { return reinterpret_cast<std::uint64_t>(host.get_netpoint()); };
    if (const auto found = shortest_->find(id(src), id(dst))) {
      for (const int link : *found) cross(link);
      std::ranges::copy_if(route.links, std::back_inserter(route.narrow),
                           [this](int link) { return !redundant_[static_cast<std::size_t>(link)]; });
      if (route.narrow.size() == route.links.size()) route.narrow = {};
      return route;
    }
  }
  std::vector<s4u::Link*> handles;
  double extra_latency = 0;
  const auto fail = [&](const std::string& problem) {
    throw std::runtime_error("route from " + src.get_name() + " to " + dst.get_name() + ": " + problem);
  };
  try {
    src.route_to(&dst, handles, &extra_latency);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  if (handles.empty()) fail("no link");
  if (extra_latency != 0) fail("latency that belongs to no link");  // Vivaldi coordinates; flows would pay it
  for (const s4u::Link* link : handles) cross(link_index_.at(link));
  return route;
}

const Route& SimPlatform::route(int src, int dst) {
  const std::uint64_t key = pair_key(src, dst);
  if (const auto known = routes_.find(key); known != routes_.end()) return known->second;
  return routes_.emplace(key, compute_route(*host(src).handle, *host(dst).handle)).first->second;
}

Route SimPlatform::route_by_simgrid(int src, int dst) {
  auto taken = std::exchange(shortest_, std::nullopt);
  Route found = compute_route(*host(src).handle, *host(dst).handle);
  shortest_ = std::move(taken);
  return found;
}

void SimPlatform::set_bandwidth(int link, double bandwidth) {
  this->link(link).handle->set_bandwidth(bandwidth * kQuantaPerByte);
}

int SimPlatform::find_host(std::string_view name) const {
  const auto found = host_index_.find(name);
  return found == host_index_.end() ? -1 : found->second;
}

std::string SimPlatform::host_property(int host, const std::string& key) const {
  const s4u::Host* handle = this->host(host).handle;
  if (const char* value = handle->get_property(key)) return value;
  const s4u::NetZone* const root = engine_.get_netzone_root();  // its get_parent() is not null but invalid
  for (const s4u::NetZone* zone = handle->get_englobing_zone();; zone = zone->get_parent()) {
    if (const char* value = zone->get_property(key)) return value;
    if (zone == root) return "";
  }
}

}  // namespace epocast
