// What leaves the device's memory, and what waiting for the link and the host's processors costs, by hand.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "costmodels/host_offload.hpp"
#include "sim/memory.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::host_offload_test {

using testing::chain;
using testing::layer;

namespace {

/// Layers of 1 s forward and 1 s backward, each of which keeps 4 B.
WorkloadTrace some_layers(int count = 4) {
  std::vector<LayerTrace> layers;
  for (int l = 0; l < count; ++l) {
    layers.push_back(layer(std::string(1, static_cast<char>('a' + l)), 1, 1, 0, {8}));
    layers.back().output = layers.back().kept_activations = Bytes(4);
  }
  return chain(std::move(layers));
}

double forward(const WorkloadTrace& trace, std::size_t l) { return trace.layers[l].times.forward.longest().value; }
double backward(const WorkloadTrace& trace, std::size_t l) { return trace.layers[l].times.backward().longest().value; }

}  // namespace

TEST_CASE("offloaded activations: a device that is faster than its link waits where the buffer is full", "[offload]") {
  WorkloadTrace trace = some_layers();
  const HostOffload offload{.activations = true, .link = BytesPerSecond(1), .buffer = Bytes(8)};
  offload.apply(trace, Optimizer::sgd, 1);
  CHECK(trace.staging == Bytes(8));
  // Copies end at 5, 9, 13 and 17 s: 4 s each, one after the other from 1 s on. The device may be 8 s ahead of that:
  // layers end at 1, 2, max(3, 13 - 8) = 5 and max(6, 17 - 8) = 9 s.
  CHECK(forward(trace, 1) == Approx(1));
  CHECK(forward(trace, 2) == Approx(1));
  CHECK(forward(trace, 3) == Approx(3));
  CHECK(forward(trace, 4) == Approx(4));
  // The activations of d and c have not left. When d's have been used, at 1 s, b's come, until 5 s: c's backward pass
  // waits for them, and ends at 6 s. Then a's come, until 10 s; b ends at 11 s, a at 12 s.
  CHECK(backward(trace, 4) == Approx(1));
  CHECK(backward(trace, 3) == Approx(5));
  CHECK(backward(trace, 2) == Approx(5));
  CHECK(backward(trace, 1) == Approx(1));
  for (std::size_t l = 1; l <= 4; ++l) {
    CHECK(trace.layers[l].kept_activations == Bytes(0));
    CHECK(trace.layers[l].offloaded == Bytes(4));
  }
}

TEST_CASE("offloaded activations: a layer that keeps nothing changes nothing", "[offload]") {
  const HostOffload offload{.activations = true, .link = BytesPerSecond(1), .buffer = Bytes(0)};
  WorkloadTrace plain = some_layers(), more = some_layers();
  more.layers.insert(more.layers.begin() + 3, layer("view", 0, 0, 0, {}))->kept_activations = Bytes(0);
  offload.apply(plain, Optimizer::sgd, 1);
  offload.apply(more, Optimizer::sgd, 1);
  CHECK(more.staging == plain.staging);
  for (std::size_t l = 1; l <= 4; ++l) {
    const std::size_t same = l < 3 ? l : l + 1;
    CAPTURE(l);
    CHECK(forward(more, same) == Approx(forward(plain, l)));
    CHECK(backward(more, same) == Approx(backward(plain, l)));
  }
  CHECK(forward(more, 3) == Approx(0));
  CHECK(backward(more, 3) == Approx(0));
}

TEST_CASE("offloaded activations: a fast link costs nothing, and without overlap every copy its time", "[offload]") {
  for (const bool overlap : {true, false}) {
    WorkloadTrace trace = some_layers();
    // 0.4 s for 4 B, of a link that two devices share. Those of three layers stay; a's come while c and b compute.
    const HostOffload offload{.activations = true,
                              .link = BytesPerSecond(20),
                              .devices_per_link = 2,
                              .overlap = overlap,
                              .buffer = Bytes(12)};
    offload.apply(trace, Optimizer::sgd, 2);
    for (std::size_t l = 1; l <= 4; ++l) {
      CHECK(forward(trace, l) == Approx(overlap ? 1 : 1.4));
      CHECK(backward(trace, l) == Approx(overlap ? 1 : 1.4));
    }
  }
}

TEST_CASE("an optimizer on the host: the longest of copies and updates, or all in turn", "[offload]") {
  // 8 B are 2 values, with 7 accesses of 4 B each for Adam: 56 B, of 140 B/s that two devices share 0.8 s; a copy takes
  // 0.5 s.
  for (const bool overlap : {true, false}) {
    WorkloadTrace trace = some_layers();
    const HostOffload offload{
        .optimizer = true, .link = BytesPerSecond(16), .host_memory = BytesPerSecond(140), .overlap = overlap};
    offload.apply(trace, Optimizer::adam, 2);
    CHECK(trace.layers[1].times.update.longest().value == Approx(overlap ? 0.8 : 0.8 + 2 * 0.5));
    CHECK(forward(trace, 1) == 1);
    CHECK(trace.layers[1].kept_activations == Bytes(4));
  }
}

TEST_CASE("what is offloaded counts in the host's memory", "[offload]") {
  WorkloadTrace trace = some_layers();
  const MemoryUse before = replica_memory(trace, Optimizer::adam);
  CHECK(before.on_host == Bytes(0));
  // Adam: two values for each of the parameters, 4 x 8 B.
  CHECK(before.optimizer_state == Bytes(64));
  HostOffload{.optimizer = true}.apply(trace, Optimizer::adam, 1);
  const MemoryUse updates = replica_memory(trace, Optimizer::adam);
  CHECK(updates.optimizer_state == Bytes(0));
  CHECK(updates.on_host == Bytes(64));
  CHECK(updates.total() == before.total() - Bytes(64));

  // Six layers, whose outputs backward reads; data of 1 MB stay. When the last one's backward pass reads its input and
  // output, 16 B of others are on the host, but for 8 B on their way.
  trace = some_layers(6);
  const MemoryUse kept = replica_memory(trace, Optimizer::adam);
  CHECK(kept.activations == Bytes(1e6 + 24));
  HostOffload{.activations = true, .buffer = Bytes(8)}.apply(trace, Optimizer::adam, 1);
  const MemoryUse use = replica_memory(trace, Optimizer::adam);
  CHECK(use.on_host == Bytes(24));
  CHECK(use.activations == Bytes(1e6 + 16));
  CHECK(use.moment == "backward f");
}

}  // namespace epocast::host_offload_test
