#pragma once
// Random platforms for property tests.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace epocast::testing {

/// The platform of these elements, with shortest routes.
inline std::string network_xml(const std::string& points, const std::string& links, const std::string& routes,
                               const std::string& routing = "DijkstraCache") {
  return fmt::format(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="net" routing="{}">
<prop id="epocast.device_model" value="synthetic"/><prop id="epocast.memory" value="16 GB"/>
<prop id="epocast.memory_bandwidth" value="500 GB/s"/>
{}{}{}</zone></platform>)",
                     routing, points, links, routes);
}

/// A random tree of switches that hosts hang on.
inline std::string random_tree(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  const int switches = 2 + below(4), hosts = 3 + below(6);
  std::string points, links, routes;
  const auto join = [&](const std::string& below_it, int above) {
    links += fmt::format(R"(<link id="l-{}" bandwidth="{}MBps" latency="1us" sharing_policy="{}"/>)", below_it,
                         1 + below(6), below(4) == 0 ? "SHARED" : "SPLITDUPLEX");
    routes += fmt::format(R"(<route src="{0}" dst="s{1}"><link_ctn id="l-{0}"{2}/></route>)", below_it, above,
                          links.ends_with("DUPLEX\"/>") ? " direction=\"UP\"" : "");
  };
  for (int h = 0; h < hosts; ++h) points += fmt::format(R"(<host id="h{}" speed="1Tf"/>)", h);
  for (int s = 0; s < switches; ++s) points += fmt::format(R"(<router id="s{}"/>)", s);
  for (int s = 1; s < switches; ++s) join(fmt::format("s{}", s), below(s));
  for (int h = 0; h < hosts; ++h) join(fmt::format("h{}", h), below(switches));
  return network_xml(points, links, routes);
}

/// The platform of a <cluster> with these attributes, and what stands behind it.
inline std::string cluster_xml(const std::string& attributes, const std::string& behind = "") {
  return network_xml(fmt::format(R"(<cluster id="c" speed="1Tf" {}/>)", attributes), behind, "", "Full");
}

/// A random star: names, numbers with gaps, one or many hosts, with or without a backbone.
inline std::string random_star(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  const int first = below(3) * 9, hosts = 1 + below(12);
  std::string attributes =
      fmt::format(R"(prefix="{}" suffix="{}" radical="{}-{}{}" bw="{}MBps" lat="{}us")", below(2) == 0 ? "n-" : "7",
                  below(2) == 0 ? "" : "-x", first, first + hosts - 1,
                  below(2) == 0 ? fmt::format(",{}", first + hosts + 3) : "", 1 + below(9), below(4));
  if (below(2) == 0) attributes += R"( sharing_policy="SPLITDUPLEX")";
  if (below(2) == 0) attributes += R"( router_id="middle")";
  if (below(2) == 0) {
    attributes += fmt::format(R"( bb_bw="{}MBps" bb_lat="{}us")", 1 + below(40), below(3));
    if (below(2) == 0) attributes += R"( bb_sharing_policy="FATPIPE")";
  }
  return cluster_xml(attributes);
}

/// A random network of hosts and switches, some of whose routes are equally short.
inline std::string random_network(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  const int hosts = 3 + below(6), switches = 2 + below(5);
  std::string points, links, routes;
  int made = 0;
  const auto name = [&](int p) { return p < hosts ? fmt::format("h{}", p) : fmt::format("s{}", p - hosts); };
  const auto join = [&](int a, int b) {
    if (below(2) == 0) std::swap(a, b);
    links += fmt::format(R"(<link id="l{}" bandwidth="{}MBps" latency="1us" sharing_policy="{}"/>)", made, 1 + below(9),
                         below(4) == 0 ? "SHARED" : "SPLITDUPLEX");
    const bool split = links.ends_with("DUPLEX\"/>");
    routes += fmt::format(R"(<route src="{}" dst="{}"><link_ctn id="l{}"{}/></route>)", name(a), name(b), made++,
                          split ? " direction=\"UP\"" : "");
  };
  for (int h = 0; h < hosts; ++h) points += fmt::format(R"(<host id="h{}" speed="1Tf"/>)", h);
  for (int s = 0; s < switches; ++s) points += fmt::format(R"(<router id="s{}"/>)", s);
  std::vector<bool> joined(static_cast<std::size_t>((hosts + switches) * (hosts + switches)));
  const auto join_once = [&](int a, int b) {
    const auto key = static_cast<std::size_t>(std::min(a, b) * (hosts + switches) + std::max(a, b));
    if (a != b && !joined[key]) join(a, b), joined[key] = true;
  };
  for (int p = 1; p < hosts + switches; ++p) join_once(below(p), p);  // connected
  for (int k = 0; k < 2 * (hosts + switches); ++k) join_once(below(hosts + switches), below(hosts + switches));
  return network_xml(points, links, routes, below(2) == 0 ? "Dijkstra" : "DijkstraCache");
}

}  // namespace epocast::testing
