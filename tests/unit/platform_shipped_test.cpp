// The platform files that ship, and the generator of more.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "platforms/platform_loader.hpp"
#include "platforms/pod_generator.hpp"
#include "platforms/probe.hpp"
#include "sim/error.hpp"
#include "sim/simgrid/engine.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::platform_shipped_test {

namespace {

const std::filesystem::path kPlatforms = std::filesystem::path(EPOCAST_SOURCE_DIR) / "platforms";

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::map<std::string, int> devices_by_node(const Cluster& cluster) {
  std::map<std::string, int> out;
  for (const Device& device : cluster.devices) out[device.node] += device.trains ? 1 : 0;
  return out;
}

std::string problem_of(const std::string& family, int nodes, double oversubscription) {
  try {
    pod_platform(family, nodes, oversubscription);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// A platform that is removed again.
class TemporaryPlatform {
 public:
  explicit TemporaryPlatform(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("epocast_pod_" + std::to_string(getpid()) + ".xml")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryPlatform() { std::filesystem::remove(path_); }
  TemporaryPlatform(const TemporaryPlatform&) = delete;
  TemporaryPlatform& operator=(const TemporaryPlatform&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("real platforms load, in epocast and in SimGrid, with the devices, nodes and memory of the machine") {
  struct Machine {
    std::string platform;
    int devices, nodes;
    double peak_tflop_per_s, memory_gb, memory_gb_per_s;
  };
  const std::vector<Machine> machines{{"skylake_10gbe", 64, 64, 8.24, 384, 255.9},
                                      {"skylake_opa", 64, 64, 8.24, 384, 255.9},
                                      {"cori_haswell", 2388, 2388, 2.355, 128, 136.5},
                                      {"cori_knl", 9688, 9688, 6.093, 96, 460},
                                      {"k80_server", 16, 1, 4.37, 12, 240},
                                      {"p100_cluster", 16, 4, 10.6, 16, 720},
                                      {"dgx1_p100", 8, 1, 10.6, 16, 720},
                                      {"dgx1_v100", 8, 1, 15.7, 16, 900},
                                      {"dgx2", 16, 1, 15.7, 32, 900},
                                      {"dgx_a100", 8, 1, 19.5, 80, 2039},
                                      {"dgx_h100", 8, 1, 66.9, 80, 3350},
                                      {"dgx_h200", 8, 1, 66.9, 141, 4800},
                                      {"dgx_a100_pod_4", 32, 4, 19.5, 80, 2039},
                                      {"dgx_h100_pod_4", 32, 4, 66.9, 80, 3350},
                                      {"dgx_h200_pod_4", 32, 4, 66.9, 141, 4800}};
  std::set<std::string> seen;
  for (const Machine& machine : machines) {
    CAPTURE(machine.platform);
    seen.insert(machine.platform);
    const Cluster cluster = load_platform(kPlatforms / (machine.platform + ".xml"));
    CHECK_NOTHROW(probe_platform(cluster));
    CHECK(cluster.trainers() == machine.devices);
    CHECK(cluster.homogeneous());
    CHECK(cluster.devices.front().peak_rate.value == Approx(machine.peak_tflop_per_s * 1e12));
    CHECK(cluster.devices.front().memory.value == Approx(machine.memory_gb * 1e9));
    CHECK(cluster.devices.front().memory_bandwidth.value == Approx(machine.memory_gb_per_s * 1e9));
    CHECK(cluster.sources.contains("link_latency"));
    const std::map<std::string, int> nodes = devices_by_node(cluster);
    CHECK(std::ssize(nodes) == machine.nodes);
    for (const auto& [node, devices] : nodes) CHECK(devices == machine.devices / machine.nodes);
  }
  for (const PlatformInfo& platform : list_platforms(kPlatforms)) {
    CAPTURE(platform.name, platform.problem);
    CHECK((platform.device_model == "synthetic" || seen.contains(platform.name)));
  }
}

// As frameworks number them: two workers are on GPUs 0 and 1, which have one NVLink, as NCCL was measured on two V100s
// (22.6 GB/s, costmodels/measurements/allreduce_v100_nvlink.csv).
TEST_CASE("the hosts of a DGX-1 are in the order of the GPUs' numbers, among which there are rings of NVLinks") {
  for (const std::string platform : {"dgx1_p100", "dgx1_v100"}) {
    const bool is_p100 = platform == "dgx1_p100";
    const std::vector<int> ring = is_p100 ? std::vector{0, 1, 2, 3, 7, 6, 5, 4} : std::vector{0, 3, 2, 1, 5, 6, 7, 4};
    const std::string said = testing::in_child([&] {
      SimEngine engine((kPlatforms / (platform + ".xml")).string());
      double slowest = 1e300;
      bool in_order = true;
      for (std::size_t i = 0; i < ring.size(); ++i) {
        slowest = std::min(slowest, engine.route(ring[i], ring[(i + 1) % ring.size()]).bandwidth);
        in_order = in_order && engine.find_host("gpu-" + std::to_string(i)) == static_cast<int>(i);
      }
      return (in_order ? "in order, " : "not in order, ") + std::to_string(std::lround(slowest / 1e9)) + ", " +
             std::to_string(std::lround(engine.route(0, 1).bandwidth / 1e9));
    });
    CHECK(said == (is_p100 ? "in order, 20, 20" : "in order, 50, 25"));
  }
}

TEST_CASE("the pods that ship are what the generator writes") {
  for (const std::string& family : pod_families()) {
    CAPTURE(family);
    CHECK(read_file(kPlatforms / (family + "_4.xml")) == pod_platform(family, 4));
  }
}

TEST_CASE("pods of any size load") {
  for (const int nodes : {1, 2, 32, 33, 100}) {
    CAPTURE(nodes);
    const TemporaryPlatform file(pod_platform("dgx_h200_pod", nodes));
    const Cluster cluster = load_platform(file.path());
    CHECK(std::ssize(cluster.devices) == 8 * nodes);
    CHECK(std::ssize(devices_by_node(cluster)) == nodes);
    CHECK_NOTHROW(probe_platform(cluster));
  }
}

// 36 nodes are a full scalable unit of 32 and one of 4. Its leaves reach the spine with 4 x 50 GB/s over the
// oversubscription; a route over the spine crosses two ports and two uplinks, and NVSwitch to change the rail.
TEST_CASE("pods of more than one scalable unit have a spine, which may be oversubscribed") {
  const TemporaryPlatform file(pod_platform("dgx_h100_pod", 36, 2.5));
  CHECK(testing::in_child([&] {
          SimEngine engine(file.path().string());
          const auto describe = [&](const std::string& from, const std::string& to) {
            std::string out;
            for (const int link : engine.route(engine.find_host(from), engine.find_host(to)).links)
              out +=
                  engine.link_name(link) + ":" + std::to_string(std::lround(engine.link_bandwidth(link) / 1e9)) + " ";
            return out;
          };
          return describe("gpu-0-1", "gpu-31-1") + "| " + describe("gpu-0-1", "gpu-35-1") + "| " +
                 std::to_string(engine.route(engine.find_host("gpu-0-1"), engine.find_host("gpu-35-2")).links.size());
        }) ==
        "port-0-1_UP:50 port-31-1_DOWN:50 | "
        "port-0-1_UP:50 uplink-0-1_UP:640 uplink-1-1_DOWN:80 port-35-1_DOWN:50 | 6");
}

TEST_CASE("a pod that cannot be is refused") {
  CHECK(problem_of("dgx_h10_pod", 4, 1) ==
        "no platform can be generated by the name 'dgx_h10_pod' (did you mean 'dgx_h100_pod'?)");
  CHECK(problem_of("dgx_h100_pod", 0, 1) == "nodes: expected 1 to 2048, got 0");
  CHECK(problem_of("dgx_h100_pod", 2049, 1) == "nodes: expected 1 to 2048, got 2049");
  CHECK(problem_of("dgx_h100_pod", 4, 0.5) == "oversubscription: expected 1 to 1000, got 0.5");
  CHECK(problem_of("dgx_h100_pod", 4, std::nan("")) == "oversubscription: expected 1 to 1000, got nan");
}

TEST_CASE("rates of other precisions are checked although nothing reads them") {
  const std::string good = pod_platform("dgx_h100_pod", 1);
  const std::string rate = "989.4 TFLOP/s";
  const std::size_t at = good.find(rate);
  REQUIRE(at != std::string::npos);
  const auto message = [&](const std::string& value) {
    try {
      parse_platform(std::string(good).replace(at, rate.size(), value), "pod.xml");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(message(rate) == "no error");
  CHECK(message("989.4").find("peak_rate_fp16].value: ") != std::string::npos);
  CHECK(message("989.4 GB/s").find("peak_rate_fp16].value: ") != std::string::npos);
  CHECK(message("0 TFLOP/s").find("must be above zero") != std::string::npos);
}

}  // namespace epocast::platform_shipped_test
