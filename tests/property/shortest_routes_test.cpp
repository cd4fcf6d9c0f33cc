// The engine finds shortest routes, and those of stars, by itself: link by link those that SimGrid finds, by which
// flows go.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/property/random_network.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::shortest_routes_test {

namespace {

/// How many pairs of hosts have another route than SimGrid says; what differs first, in words.
std::string differences(const Cluster& platform) {
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

TEST_CASE("routes are SimGrid's on random networks and stars", "[platform][property]") {
  std::vector<std::string> networks;
  for (std::uint64_t seed = 0; seed < 150; ++seed) networks.push_back(testing::random_network(seed));
  for (std::uint64_t seed = 0; seed < 80; ++seed) networks.push_back(testing::random_star(seed));
  const auto found = testing::in_children(static_cast<int>(networks.size()), [&](int job) {
    const testing::TemporaryPlatform platform(networks[static_cast<std::size_t>(job)]);
    if (platform.cluster().network == nullptr) return std::string("not known without SimGrid");
    return differences(platform.cluster());
  });
  for (std::size_t k = 0; k < networks.size(); ++k) {
    INFO("network " << k);
    CHECK(found[k].empty());
    if (!found[k].empty()) WARN(found[k]);
  }
}

TEST_CASE("shortest routes are SimGrid's on a pod", "[platform][property]") {
  const Cluster pod = testing::platform("dgx_h100_pod_4");
  CHECK(testing::in_children(1, [&](int) { return differences(pod); }).front().empty());
}

}  // namespace epocast::shortest_routes_test
