// The engine finds shortest routes by itself: link by link those that SimGrid's own search finds, by which flows go.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <random>
#include <string>

#include "tests/support/simulate.hpp"

using namespace epocast;

namespace {

/// A random network of hosts and switches, some of whose routes are equally short.
std::string random_network(std::uint64_t seed) {
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
  return fmt::format(R"(<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="net" routing="{}">
<prop id="epocast.device_model" value="synthetic"/><prop id="epocast.memory" value="16 GB"/>
<prop id="epocast.memory_bandwidth" value="500 GB/s"/>
{}{}{}</zone></platform>)",
                     below(2) == 0 ? "Dijkstra" : "DijkstraCache", points, links, routes);
}

/// How many pairs of hosts have another route than SimGrid says; what differs first, in words.
std::string differences(const std::string& platform) {
  SimEngine engine(platform);
  for (int a = 0; a < engine.host_count(); ++a)
    for (int b = 0; b < engine.host_count(); ++b) {
      const Route ours = engine.route(a, b), theirs = engine.route_by_simgrid(a, b);
      if (ours.links != theirs.links || ours.latency != theirs.latency || ours.bandwidth != theirs.bandwidth)
        return fmt::format("from {} to {}: {} links, not {}", engine.host_name(a), engine.host_name(b),
                           ours.links.size(), theirs.links.size());
    }
  return "";
}

}  // namespace

TEST_CASE("shortest routes are SimGrid's on random networks", "[platform][property]") {
  std::vector<std::string> networks;
  for (std::uint64_t seed = 0; seed < 150; ++seed) networks.push_back(random_network(seed));
  const auto found = testing::in_children(static_cast<int>(networks.size()), [&](int job) {
    const testing::TemporaryPlatform platform(networks[static_cast<std::size_t>(job)]);
    return differences(platform.cluster().platform_file.string());
  });
  for (std::size_t k = 0; k < networks.size(); ++k) {
    INFO("network " << k);
    CHECK(found[k].empty());
    if (!found[k].empty()) WARN(found[k]);
  }
}

TEST_CASE("shortest routes are SimGrid's on a pod", "[platform][property]") {
  const Cluster pod = testing::platform("dgx_h100_pod_4");
  CHECK(testing::in_children(1, [&](int) { return differences(pod.platform_file.string()); }).front().empty());
}
