// An engine that knows the network from its file does without SimGrid until flows compete; then SimGrid has to read the
// same.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/simgrid/simgrid.hpp"
#include "tests/property/random_network.hpp"
#include "tests/support/in_child.hpp"
#include "tests/support/simulate.hpp"

namespace epocast::simgrid_on_demand_test {
namespace {

namespace fs = std::filesystem;

const fs::path kPlatforms = fs::path(EPOCAST_SOURCE_DIR) / "platforms";

const std::string kHosts = R"(<host id="a" speed="1Tf"/><host id="b" speed="1Tf"/><router id="s"/>)";
const std::string kLinks = R"(<link id="la" bandwidth="1GBps" latency="1us" sharing_policy="SPLITDUPLEX"/>)"
                           R"(<link id="lb" bandwidth="2GBps" latency="3us"/>)";
const std::string kRoutes = R"(<route src="a" dst="s"><link_ctn id="la" direction="UP"/></route>)"
                            R"(<route src="s" dst="b"><link_ctn id="lb"/></route>)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

/// Ends with the first flow or timer.
struct Silent : SimEngine::Listener {
  void on_timer(std::uint64_t /*token*/) override {}
  void on_flow_done(std::uint64_t /*token*/) override {}
};

/// What goes wrong when a flow runs on the platform, whose file `change` has changed since it was read, or when its
/// route is compared with SimGrid's instead.
std::string problem_after(const std::function<void(const fs::path&)>& change, bool compare) {
  const testing::TemporaryPlatform platform(testing::network_xml(kHosts, kLinks, kRoutes));
  return testing::in_child([&]() -> std::string {
    change(platform.cluster().platform_file);
    SimEngine engine(platform.cluster());
    Silent silent;
    engine.set_listener(silent);
    engine.start_timer(2, 0);
    try {
      engine.run();
      if (compare) return engine.route(0, 1).links == engine.route_by_simgrid(0, 1).links ? "" : "another route";
      engine.start_flow(0, 1, 1e9, 1);
      engine.run();
    } catch (const std::exception& error) {
      return error.what();
    }
    return engine.now() == 3 ? "" : "another date";
  });
}

}  // namespace

TEST_CASE("the network of a file with shortest routes is known without SimGrid") {
  const testing::TemporaryPlatform platform(testing::network_xml(kHosts, kLinks, kRoutes));
  REQUIRE(platform.cluster().network != nullptr);
  const NetworkGraph& graph = *platform.cluster().network;
  CHECK(graph.sure);
  CHECK(graph.hosts == std::vector<std::string>{"a", "b"});
  std::string links, ways;
  for (const NetworkGraph::Link& l : graph.links)
    links += fmt::format("{} {:g} {:g}, ", l.name, l.bandwidth, l.latency);
  for (const NetworkGraph::Way& w : graph.ways)
    ways += fmt::format("{}-{} {}, ", w.from, w.to, graph.links[static_cast<std::size_t>(w.link)].name);
  CHECK(links == "__loopback__ 1e+10 0, la_DOWN 1e+09 1e-06, la_UP 1e+09 1e-06, lb 2e+09 3e-06, ");
  CHECK(ways == "0-2 la_UP, 2-0 la_DOWN, 2-1 lb, 1-2 lb, ");
}

TEST_CASE("other platforms are SimGrid's to tell") {
  const auto network = [](const std::string& xml) { return testing::TemporaryPlatform(xml).cluster().network; };
  const std::string plain = testing::network_xml(kHosts, kLinks, kRoutes);
  CHECK(network(testing::network_xml(kHosts, kLinks, kRoutes, "Floyd")) == nullptr);
  CHECK(network(replaced(plain, R"(<link_ctn id="lb"/>)", R"(<link_ctn id="lb"/><link_ctn id="lb"/>)")) == nullptr);
  CHECK(load_platform(kPlatforms / "cori_knl.xml").network == nullptr);  // several stars
  const std::string star = R"(prefix="h" suffix="" radical="0-2" bw="1GBps" lat="1us")";
  CHECK(network(testing::cluster_xml(star)) != nullptr);
  CHECK(network(testing::cluster_xml(star + R"( bb_bw="2GBps" bb_lat="1us")")) != nullptr);
  for (const char* more : {R"( bb_bw="2GBps")", R"( limiter_link="2GBps")", R"( loopback_bw="2GBps" loopback_lat="0")",
                           R"( sharing_policy="SHARED")", R"( sharing_policy="FATPIPE")"})
    CHECK(network(testing::cluster_xml(star + more)) == nullptr);
  // SimGrid dies of a second link of one name.
  CHECK(network(testing::cluster_xml(star, R"(<link id="c_link_0_UP" bandwidth="1GBps" latency="0"/>)")) == nullptr);
  // What SimGrid may read in another way is known, but loaded at once.
  CHECK_FALSE(network(replaced(plain, "synthetic", "a &amp; b"))->sure);
  CHECK_FALSE(network(replaced(plain, "https://simgrid.org", "http://simgrid.gforge.inria.fr/simgrid"))->sure);
  CHECK_FALSE(network(replaced(plain, R"(<?xml version="1.0"?>)", R"(<?xml version='1.0'?>)"))->sure);
}

TEST_CASE("SimGrid is told a network that is known; where it reads the file to compare, it has to read the same") {
  const auto nothing = [](const fs::path&) {};
  const auto remove = [](const fs::path& file) { fs::remove(file); };
  const auto widen = [](const fs::path& file) {
    std::ofstream(file) << testing::network_xml(kHosts, replaced(kLinks, "2GBps", "3GBps"), kRoutes);
  };
  const auto rename = [](const fs::path& file) {
    std::ofstream(file) << testing::network_xml(replaced(kHosts, "\"b\"", "\"c\""), kLinks,
                                                replaced(kRoutes, "\"b\"", "\"c\""));
  };
  CHECK(problem_after(nothing, true).empty());
  for (const auto& change : {std::function<void(const fs::path&)>(remove), {widen}, {rename}})
    CHECK(problem_after(change, false).empty());
  CHECK_THAT(problem_after(remove, true), Catch::EndsWith(": no such file"));
  CHECK_THAT(problem_after(widen, true), Catch::EndsWith(": SimGrid reads link lb otherwise"));
  CHECK_THAT(problem_after(rename, true), Catch::EndsWith(": SimGrid reads other hosts"));
}

TEST_CASE("of several workers in a star SimGrid learns only if their flows compete") {
  const testing::Star star(4, 1e9, 1e-3);
  const auto needed = [&](const std::vector<std::pair<int, int>>& flows) {
    return testing::in_child([&]() -> std::string {
      SimEngine engine(star.cluster());
      Silent silent;
      engine.set_listener(silent);
      engine.declare_flows(flows);
      for (const auto& [from, to] : flows) engine.start_flow(from, to, 1e9, 1);
      engine.run();
      return fmt::format("{:g} s{}", engine.now(), simgrid_is_loaded() ? ", with SimGrid" : "");
    });
  };
  if (simgrid_is_loaded()) {  // for the children of a test before this one, if all files run in one process
    WARN("not shown: SimGrid is loaded already");
    return;
  }
  CHECK(needed({{0, 1}, {1, 2}, {2, 3}, {3, 0}}) == "1 s");
  CHECK(needed({{0, 3}, {1, 3}, {2, 3}}) == "3 s");
  CHECK(needed({{0, 1}, {0, 2}, {3, 2}}) == "2 s, with SimGrid");
}

TEST_CASE("SimGrid reads of every platform that ships what epocast reads") {
  std::vector<Cluster> all;
  for (const PlatformInfo& info : list_platforms(kPlatforms))
    all.push_back(load_platform(kPlatforms / (info.name + ".xml")));
  for (const PlatformInfo& info : list_clusters(kPlatforms))
    all.push_back(load_platform_named(ConfigNode::load_text(info.name, "test"), EPOCAST_SOURCE_DIR));
  int known = 0;
  for (const Cluster& cluster : all) {
    if (cluster.network == nullptr || cluster.devices.size() < 2) continue;
    CAPTURE(cluster.name);
    CHECK(cluster.network->sure);
    ++known;
    CHECK(testing::in_child([&] {
            SimEngine engine(cluster);
            const int last = engine.host_count() - 1;
            for (const int to : {0, 1, last})  // with the way to itself
              if (engine.route(0, to).links != engine.route_by_simgrid(0, to).links) return "another route";
            return "the same";
          }) == "the same");
  }
  CHECK(known > 10);
}

}  // namespace epocast::simgrid_on_demand_test
