// Gradients of an optimizer in the host's memory: what of them is on the device.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "costmodels/host_offload.hpp"
#include "strategies/register.hpp"
#include "tests/support/hand_timeline.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::offloaded_gradients_test {

namespace {

/// Of the first worker, with Adam on the host. Layers A and B have 10 and 20 MB of parameters.
MemoryUse use_of(const std::string& strategy, const std::string& options, std::vector<DeviceId> workers) {
  const Cluster cluster = testing::cluster_of(2);
  const TraceSource source = [](std::int64_t batch) {
    WorkloadTrace trace = testing::two_layers(batch);
    HostOffload{.optimizer = true}.apply(trace, Optimizer::adam, 1);
    return trace;
  };
  const ConfigNode node = ConfigNode::load_text(options, "options");
  const auto batch = static_cast<std::int64_t>(workers.size());
  return builtin_strategies()
      .make(strategy, node, node)
      ->compile({cluster, std::move(workers), batch, source, {}, Optimizer::adam})
      .memory.front()
      .use;
}

}  // namespace

TEST_CASE("gradients that are sharded leave the device unit by unit", "[offload][sharded]") {
  for (const std::string stage : {"2", "3"}) {
    INFO("stage " << stage);
    const std::string options = "{unit: 1 B, stage: " + stage + "}";
    const MemoryUse two = use_of("sharded_data_parallel", options, {0, 1});
    // Of B, the larger one. On the host: half of 60 MB of moments, and of 30 MB of gradients.
    CHECK(two.gradients.value == Approx(20e6));
    CHECK(two.optimizer_state == Bytes(0));
    CHECK(two.on_host.value == Approx(30e6 + 15e6));
    // Also from a device that shares with nobody.
    const MemoryUse alone = use_of("sharded_data_parallel", options, {0});
    CHECK(alone.parameters.value == Approx(30e6));
    CHECK(alone.gradients.value == Approx(20e6));
    CHECK(alone.on_host.value == Approx(60e6 + 30e6));
    // Training goes on with parameters and moments, not with gradients.
    CHECK(alone.lasting().value == Approx(30e6 + 60e6));
  }
}

TEST_CASE("gradients that are not sharded are on the device until the update", "[offload][sharded]") {
  const MemoryUse one = use_of("sharded_data_parallel", "{unit: 1 B, stage: 1}", {0, 1});
  CHECK(one.gradients.value == Approx(30e6));
  CHECK(one.on_host.value == Approx(30e6));
  const MemoryUse whole = use_of("data_parallel", "{}", {0, 1});
  CHECK(whole.gradients.value == Approx(30e6));
  CHECK(whole.on_host.value == Approx(60e6));
}

}  // namespace epocast::offloaded_gradients_test
