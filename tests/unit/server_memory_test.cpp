// What parameter servers hold: of their pieces the parameters, the sum of gradients, and the optimizer's state.
#include <catch2/catch.hpp>

#include <numeric>
#include <string>

#include "strategies/register.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::server_memory_test {

namespace {

/// Two layers of 10 and 30 MB, on two workers.
std::vector<DeviceMemory> memory(const std::string& options, int devices, Optimizer optimizer) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const Cluster cluster = testing::cluster_of(devices);
  const TraceSource trace = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 1, 2, 0, {10e6}), testing::layer("B", 1, 2, 0, {30e6})}, batch);
  };
  return builtin_strategies()
      .make("parameter_server", node, node)
      ->compile({cluster, {0, 1}, 2, trace, {}, optimizer})
      .memory;
}

}  // namespace

TEST_CASE("a server holds parameters, gradients and state of its layers", "[parameter_server]") {
  for (const auto& [optimizer, values] :
       {std::pair{Optimizer::sgd, 0}, {Optimizer::momentum, 1}, {Optimizer::adam, 2}}) {
    // One server with both layers; then one each: round robin gives A to the first.
    for (const auto& [options, held] : {std::pair<std::string, std::vector<double>>{"{mode: sync}", {40e6}},
                                        {"{mode: async, servers: 2, placement: round_robin}", {10e6, 30e6}}}) {
      INFO(options << ", " << values << " values of state");
      const std::vector<DeviceMemory> holders = memory(options, 4, optimizer);
      REQUIRE(holders.size() == 1 + held.size());
      CHECK(holders.front().devices == std::vector<DeviceId>{0, 1});
      for (std::size_t s = 0; s < held.size(); ++s) {
        const MemoryUse& use = holders[1 + s].use;
        CHECK(use.parameters.value == held[s]);
        CHECK(use.gradients.value == held[s]);
        CHECK(use.optimizer_state.value == values * held[s]);
        CHECK(use.total().value == (2 + values) * held[s]);
      }
    }
  }
}

TEST_CASE("dedicated servers go to nodes where nobody trains, one to each before any has two", "[parameter_server]") {
  // Nodes of three devices; devices 0 and 1 train.
  Cluster cluster = testing::cluster_of(9);
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) cluster.devices[d].node = "node" + std::to_string(d / 3);
  const TraceSource trace = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 1, 2, 0, {10e6})}, batch);
  };
  const ConfigNode options = ConfigNode::load_text("{mode: sync, servers: 7, placement: even}", "options");
  const std::vector<DeviceMemory> holders = builtin_strategies()
                                                .make("parameter_server", options, options)
                                                ->compile({cluster, {0, 1}, 2, trace, {}, Optimizer::sgd})
                                                .memory;
  std::vector<DeviceId> servers;
  for (std::size_t s = 1; s < holders.size(); ++s)
    servers.insert(servers.end(), holders[s].devices.begin(), holders[s].devices.end());
  CHECK(servers == std::vector<DeviceId>{3, 6, 4, 7, 5, 8, 2});
}

TEST_CASE("a worker that is a server too holds what both hold", "[parameter_server]") {
  const std::vector<DeviceMemory> holders = memory("{mode: sync, location: colocated}", 2, Optimizer::sgd);
  REQUIRE(holders.size() == 2);
  REQUIRE(holders[1].holder == "worker and server 0");
  CHECK(holders[0].use.activation_gradients.value > 0);
  CHECK(holders[1].use.total().value == holders[0].use.total().value + 2 * 40e6);
}

}  // namespace epocast::server_memory_test
