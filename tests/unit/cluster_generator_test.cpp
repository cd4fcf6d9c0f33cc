// Platforms from descriptions: what is in them, and what their links carry.
#include <catch2/catch.hpp>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "platforms/boards.hpp"
#include "platforms/cluster_generator.hpp"
#include "platforms/platform_loader.hpp"
#include "platforms/probe.hpp"
#include "sim/simgrid/engine.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/in_child.hpp"

namespace epocast::cluster_generator_test {

namespace {

const std::filesystem::path kPlatforms = std::filesystem::path(EPOCAST_SOURCE_DIR) / "platforms";

constexpr const char* kDevices =
    "toy: {model: a toy, cores: 4, peak_rate: 1 TFLOP/s, memory: 1 GB, memory_bandwidth: 10 GB/s}\n";

Cluster load(const std::string& text) {
  return load_cluster(ConfigNode::load_text(text, "cluster.yaml"), ConfigNode::load_text(kDevices, "devices.yaml"));
}

/// Latency [s] and bandwidth [B/s] between each two of these devices, one after the other.
std::vector<double> between(const std::string& text, const std::vector<std::pair<int, int>>& pairs) {
  std::istringstream in(testing::in_child([&] {
    const Cluster cluster = load(text);
    SimEngine engine(cluster);
    const auto host = [&](int d) { return engine.find_host(cluster.devices[static_cast<std::size_t>(d)].name); };
    std::ostringstream out;
    for (const auto& [a, b] : pairs) {
      const Route& route = engine.route(host(a), host(b));
      out << route.latency << ' ' << route.bandwidth << ' ';
    }
    return out.str();
  }));
  std::vector<double> out;
  for (double value = 0; in >> value;) out.push_back(value);
  REQUIRE(out.size() == 2 * pairs.size());
  return out;
}

}  // namespace

TEST_CASE("a cluster of few lines has its devices in nodes") {
  const Cluster cluster = load(
      "cluster: lab\nnodes: 3\ndevices: {kind: toy, per_node: 4}\ninside: {rate: 12 GB/s}\ncards: {rate: 25 Gb/s}\n");
  REQUIRE(cluster.devices.size() == 12);
  CHECK(cluster.name == "lab");
  CHECK(cluster.devices[5].name == "gpu-1-1");
  CHECK(cluster.devices[5].node == "node-1");
  CHECK(cluster.devices[5].model == "a toy");
  CHECK(cluster.devices[5].peak_rate.value == 1e12);
  CHECK(cluster.homogeneous());
}

TEST_CASE("messages inside a node take the devices' links, messages between nodes the cards too") {
  const std::string text =
      "cluster: lab\nnodes: 2\ndevices: {kind: toy, per_node: 4, per_switch: 2}\n"
      "inside: {rate: 12 GB/s, latency: 6 us, uplink: 8 GB/s}\ncards: {rate: 16 Gb/s, latency: 20 us}\n";
  const auto seen = between(text, {{0, 1}, {0, 2}, {0, 4}});
  CHECK(seen[0] == Approx(6e-6));  // on one switch: two links
  CHECK(seen[1] == Approx(12e9));
  CHECK(seen[2] == Approx(6e-6));  // on two switches: the uplinks are slower and add no latency
  CHECK(seen[3] == Approx(8e9));
  CHECK(seen[4] == Approx(26e-6));  // two nodes: half of the way inside and one card at each end
  CHECK(seen[5] == Approx(2e9));
}

TEST_CASE("without peer access neighbours on a switch exchange over its uplink, too") {
  const std::string text =
      "cluster: lab\ndevices: {kind: toy, per_node: 4, per_switch: 2}\n"
      "inside: {rate: 12 GB/s, latency: 6 us, uplink: 8 GB/s, peer_access: ";
  const auto direct = between(text + "true}\n", {{0, 1}, {0, 2}}),
             staged = between(text + "false}\n", {{0, 1}, {0, 2}});
  CHECK(direct[1] == Approx(12e9));
  CHECK(staged[0] == Approx(6e-6));
  CHECK(staged[1] == Approx(8e9));  // up and down the uplink
  CHECK(staged[2] == Approx(6e-6));
  CHECK(staged[3] == Approx(8e9));
}

TEST_CASE("pairs with links of their own use these, and nothing is forwarded by a third device") {
  const auto text = [](const std::string& cards) {
    return "cluster: lab\nnodes: 2\ndevices: {kind: toy, per_node: 4, per_switch: 2}\n"
           "inside: {rate: 12 GB/s, latency: 6 us, uplink: 8 GB/s, mesh: {rate: 25 GB/s, latency: 3 us, links: [0-1, "
           "1-2, 2-1]}}\ncards: {rate: 16 Gb/s, latency: 20 us, per_node: " +
           cards + "}\n";
  };
  for (const std::string cards : {"1", "2"}) {
    CAPTURE(cards);
    const auto seen = between(text(cards), {{0, 1}, {1, 2}, {2, 3}, {0, 2}, {0, 5}});
    CHECK(seen[0] == Approx(3e-6));
    CHECK(seen[1] == Approx(25e9));
    CHECK(seen[2] == Approx(3e-6));
    CHECK(seen[3] == Approx(50e9));  // two links
    CHECK(seen[4] == Approx(6e-6));  // on one switch
    CHECK(seen[5] == Approx(12e9));
    CHECK(seen[6] == Approx(6e-6));  // on two, though two links of the mesh would lead there
    CHECK(seen[7] == Approx(8e9));
    CHECK(seen[8] == Approx(26e-6));  // two nodes: half of the way inside and one card at each end
    CHECK(seen[9] == Approx(2e9));
  }
}

// 22.6 GB/s on two, 85 on four and 134 on eight is the bus bandwidth of NCCL's all-reduce (docs/collectives.md).
TEST_CASE("two V100 of a cloud node have one NVLink, not those of eight") {
  for (const std::string name : {"p3_16xlarge", "p3dn_24xlarge", "dgx1_v100_cluster"}) {
    CAPTURE(name);
    std::istringstream in(testing::in_child([&] {
      const Cluster cluster = load_cluster(ConfigNode::load_file(kPlatforms / "clusters" / (name + ".yaml")),
                                           ConfigNode::load_file(kPlatforms / "devices.yaml"));
      SimEngine engine(cluster);
      const auto host = [&](std::size_t d) { return engine.find_host(cluster.devices[d].name); };
      double of_all = 0;  // of the links between GPU 0 and the others of its node
      for (std::size_t d = 1; d < 5; ++d) of_all += engine.route(host(0), host(d)).bandwidth;
      return std::to_string(engine.route(host(0), host(1)).bandwidth) + ' ' + std::to_string(of_all);
    }));
    double pair = 0, all = 0;
    in >> pair >> all;
    CHECK(pair == Approx(22.6e9).epsilon(0.02));
    CHECK(all == Approx(134e9).epsilon(0.01));
  }
}

TEST_CASE("devices of a board are slower while their neighbours train, too") {
  const ConfigNode dual = ConfigNode::load_text(
      "toy: {model: a toy, cores: 4, peak_rate: 1 TFLOP/s, memory: 1 GB, memory_bandwidth: 10 GB/s, per_board: 2, "
      "shared_speed: 0.8}\n",
      "devices.yaml");
  const auto description = [](const std::string& per_node) {
    return ConfigNode::load_text("cluster: lab\nnodes: 2\ndevices: {kind: toy, per_node: " + per_node +
                                     "}\ninside: {rate: 1 GB/s}\ncards: {rate: 1 GB/s}\n",
                                 "cluster.yaml");
  };
  // Boards 0 1 and 2 of the first node, 3 4 and 5 of the second: 0 and 1 share theirs, 2 and 3 are on two nodes.
  const std::vector<DeviceId> workers{0, 1, 2, 3};
  CHECK(board_slowdown(load_cluster(description("3"), dual), workers) ==
        std::vector<double>{1 / 0.8, 1 / 0.8, 1, 1, 1, 1});
  CHECK(board_slowdown(load("cluster: lab\ndevices: {kind: toy, per_node: 4}\ninside: {rate: 1 GB/s}\n"), workers)
            .empty());
}

TEST_CASE("the processors of a node are a host behind its switch, which trains nothing") {
  const ConfigNode kinds = ConfigNode::load_text(
      "toy: {model: a toy, cores: 4, peak_rate: 1 TFLOP/s, peak_rate_fp16: 2 TFLOP/s, memory: 1 GB, memory_bandwidth: "
      "10 GB/s}\n"
      "host: {model: a host, cores: 8, peak_rate: 0.5 TFLOP/s, memory: 64 GB, memory_bandwidth: 50 GB/s}\n",
      "devices.yaml");
  const auto description = [](const std::string& cards) {
    return ConfigNode::load_text(
        "cluster: lab\nnodes: 2\ndevices: {kind: toy, per_node: 4, per_switch: 2}\n"
        "inside: {rate: 12 GB/s, latency: 6 us, uplink: 8 GB/s}\nprocessors: {kind: host}\n"
        "cards: {rate: 16 Gb/s, latency: 20 us, per_node: " +
            cards + "}\n",
        "cluster.yaml");
  };
  const Cluster cluster = load_cluster(description("1"), kinds);
  REQUIRE(cluster.devices.size() == 10);
  CHECK(cluster.trainers() == 8);
  CHECK(cluster.homogeneous());
  const Device& host = cluster.devices[9];
  CHECK_FALSE(host.trains);
  CHECK(host.node == "node-1");
  CHECK(host.model == "a host");
  CHECK(host.memory_bandwidth.value == 50e9);
  CHECK(host.matrix_rate(Precision::fp16).value == 0);  // not the devices'
  CHECK(cluster.hosts_of({0, 3, 5}) == std::vector<DeviceId>{8, 9});

  // Half of the way inside; the uplink is the slowest. To another node also its card.
  for (const std::string cards : {"1", "2"}) {
    CAPTURE(cards);
    std::istringstream in(testing::in_child([&] {
      const Cluster machine = load_cluster(description(cards), kinds);
      SimEngine engine(machine);
      const auto id = [&](std::size_t d) { return engine.find_host(machine.devices[d].name); };
      std::ostringstream out;
      for (const auto& [a, b] : {std::pair{1, 8}, {4, 8}, {8, 9}})
        out << engine.route(id(a), id(b)).latency << ' ' << engine.route(id(a), id(b)).bandwidth << ' ';
      return out.str();
    }));
    std::vector<double> seen;
    for (double value = 0; in >> value;) seen.push_back(value);
    REQUIRE(seen.size() == 6);
    CHECK(seen[0] == Approx(3e-6));
    CHECK(seen[1] == Approx(8e9));
    CHECK(seen[3] == Approx(2e9));
    CHECK(seen[4] == Approx(20e-6));
    CHECK(seen[5] == Approx(2e9));
  }
}

TEST_CASE("with several cards neighbours still talk inside the node") {
  const std::string text =
      "cluster: lab\nnodes: 2\ndevices: {kind: toy, per_node: 4}\ninside: {rate: 100 GB/s, latency: 4 us}\n"
      "cards: {per_node: 2, rate: 100 Gb/s, latency: 14 us}\n";
  const auto seen = between(text, {{0, 1}, {0, 4}});
  CHECK(seen[0] == Approx(4e-6));
  CHECK(seen[1] == Approx(100e9));
  CHECK(seen[2] == Approx(14e-6));
  CHECK(seen[3] == Approx(12.5e9));

  // Cards, and not the buses and cables before and behind them, hold messages up: a degraded link is one of these.
  const std::string names = testing::in_child([&] {
    const Cluster cluster = load(text);
    SimEngine engine(cluster);
    std::string out;
    for (const int link :
         engine.route(engine.find_host(cluster.devices[1].name), engine.find_host(cluster.devices[7].name))
             .bottlenecks())
      out += engine.link_name(link) + ' ';
    return out;
  });
  CHECK(names == "card-0-0_UP card-1-1_DOWN ");
}

TEST_CASE("every kind of the catalogue is read whole, and what its kernels are like is not its host's") {
  for (const auto& [kind, device] : list_devices(kPlatforms)) {
    CAPTURE(kind);
    const ConfigNode entry = ConfigNode::load_file(kPlatforms / "devices.yaml").at(kind);
    CHECK(device.model == Name(entry.at("model").as_string()));
    CHECK(device.matrix_rate(Precision::fp8).value ==
          (entry.has("peak_rate_fp8") ? entry.at("peak_rate_fp8").as_flop_per_second().value : 0));
    CHECK(device.kernels_like.text().empty() == !entry.has("kernels_like"));
    CHECK(device.product_share == (entry.has("product_share") ? entry.at("product_share").as_double() : 1));
  }
  const Cluster mixed = load_cluster(
      ConfigNode::load_text("cluster: lab\ndevices: {kind: rtx_4090, per_node: 2}\ninside: {rate: 1 GB/s}\n"
                            "processors: {kind: xeon_8275cl_pair}\n",
                            "cluster.yaml"),
      ConfigNode::load_file(kPlatforms / "devices.yaml"));
  CHECK(mixed.devices.front().kernels_like == Name("NVIDIA L40S"));
  CHECK(mixed.devices.back().kernels_like.text().empty());
  CHECK(mixed.devices.front().product_share > 1);
  CHECK(mixed.devices.back().product_share == 1);
}

TEST_CASE("every cluster that ships loads, and SimGrid takes it") {
  const std::vector<PlatformInfo> clusters = list_clusters(kPlatforms);
  CHECK(clusters.size() >= 8);
  for (const PlatformInfo& info : clusters) {
    CAPTURE(info.name);
    const Cluster cluster = load_cluster(ConfigNode::load_file(kPlatforms / "clusters" / (info.name + ".yaml")),
                                         ConfigNode::load_file(kPlatforms / "devices.yaml"));
    CHECK(cluster.name == info.name);
    CHECK(cluster.sources.contains("topology"));
    probe_platform(cluster);
  }
}

TEST_CASE("impossible clusters are refused") {
  const auto said = [](const std::string& text) { return testing::message([&] { load(text); }); };
  const std::string head = "cluster: lab\nnodes: 2\n";
  const std::string tail = "inside: {rate: 1 GB/s}\ncards: {rate: 1 GB/s}\n";
  CHECK(said(head + "devices: {kind: toi, per_node: 4}\n" + tail).find("did you mean 'toy'") != std::string::npos);
  CHECK(said(head + "devices: {kind: toy, per_node: 4, per_switch: 3}\n" + tail).find("must divide") !=
        std::string::npos);
  const ConfigNode unlike =
      ConfigNode::load_text(kDevices + std::string("odd: {model: odd, kernels_like: toi}\n"), "devices.yaml");
  CHECK(testing::message([&] {
          load_cluster(ConfigNode::load_text(head + "devices: {kind: odd, per_node: 4}\n" + tail, "cluster.yaml"),
                       unlike);
        }).find("did you mean 'toy'") != std::string::npos);
  CHECK(said(head + "devices: {kind: toy, per_node: 4, per_switch: 2}\n" + tail).find("uplink") != std::string::npos);
  CHECK(said(head + "devices: {kind: toy, per_node: 4}\ninside: {rate: 1 GB/s}\n").find("cards") != std::string::npos);
  CHECK(said(head + "devices: {kind: toy, per_node: 4}\ninside: {rate: 0 GB/s}\ncards: {rate: 1 GB/s}\n")
            .find("inside.rate") != std::string::npos);
  CHECK(said(head + "devices: {kind: {model: mine}, per_node: 4}\n" + tail).find("platform file") != std::string::npos);
  const auto mesh = [&](const std::string& links) {
    return said(head + "devices: {kind: toy, per_node: 4}\ninside: {rate: 1 GB/s, mesh: {rate: 1 GB/s, links: [" +
                links + "]}}\ncards: {rate: 1 GB/s}\n");
  };
  for (const std::string pair : {"0-4", "01", "1-", "-1", "a-b", "0-1-2"})
    CHECK(mesh(pair).find("0 to 3, such as 0-1") != std::string::npos);
  CHECK(mesh("2-2").find("with itself") != std::string::npos);
  CHECK(mesh("0-1") == "no error");
  CHECK(said("cluster: a b\ndevices: {kind: toy, per_node: 1}\n" + tail).find("letters, digits") != std::string::npos);
}

}  // namespace epocast::cluster_generator_test
