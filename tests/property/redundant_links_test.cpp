// What the engine takes for links that hold nobody up never is as full as the fullest of the others.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>

#include "platforms/pod_generator.hpp"
#include "tests/property/random_network.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::redundant_links_test {

namespace {

/// Loads the routes between all hosts at random, some hundred times. Returns how many links are left out somewhere, or
/// -1 if one of them was once the fullest.
int left_out(const Cluster& platform) {
  SimEngine engine(platform);
  const int hosts = engine.host_count();
  std::mt19937_64 random(1);
  std::set<int> redundant;
  for (int trial = 0; trial < 60; ++trial) {
    const std::uint64_t rare = 1 + random() % 8;  // one pair in so many talks
    std::vector<double> load(static_cast<std::size_t>(engine.link_count()));
    std::set<int> narrow;
    for (int a = 0; a < hosts; ++a)
      for (int b = 0; b < hosts; ++b) {
        if (a == b || random() % rare != 0) continue;
        const Route& route = engine.route(a, b);
        const double bytes = std::exp2(static_cast<double>(random() % 8));
        for (const int link : route.links) load[static_cast<std::size_t>(link)] += bytes;
        narrow.insert(route.bottlenecks().begin(), route.bottlenecks().end());
      }
    const auto fill = [&](std::size_t link) { return load[link] / engine.link_bandwidth(static_cast<int>(link)); };
    double fullest = 0;
    for (const int link : narrow) fullest = std::max(fullest, fill(static_cast<std::size_t>(link)));
    for (std::size_t link = 0; link < load.size(); ++link) {
      if (load[link] == 0 || narrow.contains(static_cast<int>(link))) continue;
      redundant.insert(static_cast<int>(link));
      if (fill(link) > fullest * (1 + 1e-9)) return -1;
    }
  }
  return static_cast<int>(redundant.size());
}

int left_out_of(const std::string& xml) {
  const testing::TemporaryPlatform platform(xml);
  return std::stoi(testing::in_child([&] { return std::to_string(left_out(platform.cluster())); }));
}

}  // namespace

TEST_CASE("links that are left out hold nobody up", "[platform][property]") {
  int sum = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("network " << seed);
    const int of_network = left_out_of(testing::random_network(seed)),
              of_tree = left_out_of(testing::random_tree(seed));
    REQUIRE(of_network >= 0);
    REQUIRE(of_tree >= 0);
    sum += of_tree;
  }
  CHECK(sum > 100);  // or else little has been tested
}

TEST_CASE("a pod's uplinks are left out unless they are oversubscribed", "[platform][property]") {
  constexpr int kUplinks = 2 * 8 * 2;  // scalable units, rails, directions
  CHECK(left_out_of(pod_platform("dgx_a100_pod", 21)) == kUplinks);
  // The second unit has a node: its uplinks are narrower than its ports, and than all that comes from the first.
  CHECK(left_out_of(pod_platform("dgx_a100_pod", 21, 1.5)) == kUplinks / 2 + 2 * 8);
}

}  // namespace epocast::redundant_links_test
