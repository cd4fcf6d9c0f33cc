// Training in other precisions than fp32: a product of 1000 x 1000 weights on a device of 1 TFLOP/s (4 in fp16) and a
// memory of 1 TB/s, 100 samples.
#include <catch2/catch.hpp>

#include "costmodels/roofline.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::precision_test {

namespace {

Model product() {
  Model model{"product", "", {}, ""};
  model.layers.resize(3);
  model.layers[0].name = "data";
  model.layers[0].output = model.layers[1].input = {1000, 1, 1, 1};
  Layer& fc = model.layers[1];
  fc.name = "fc";
  fc.kind = LayerKind::fully_connected;
  fc.inputs = {0};
  fc.output = {1000, 1, 1, 1};
  fc.input_values = 1000;
  fc.forward_flop = fc.backward_data_flop = fc.backward_weights_flop = 2e6;
  fc.parameters = {{"fc.weight", 1'000'000}};
  Layer& relu = model.layers[2];
  relu = fc;
  relu.name = "relu";
  relu.kind = LayerKind::activation;
  relu.inputs = {1};
  relu.parameters.clear();
  relu.backward_weights_flop = 0;
  return model;
}

Device device() {
  Device out = testing::cluster_of(1).devices.front();  // 1 TFLOP/s
  out.memory_bandwidth = BytesPerSecond(1e12);
  out.other_rates[Precision::tf32] = FlopPerSecond(2e12);
  out.other_rates[Precision::fp16] = FlopPerSecond(4e12);
  return out;
}

WorkloadTrace trace(Precision precision) {
  const Roofline cost({.efficiency = 1, .memory_efficiency = 1, .overhead = Seconds(0), .precision = precision});
  return make_trace(product(), cost, 100, device(), precision);
}

}  // namespace

TEST_CASE("narrow numbers: products at their rate, the rest at that of fp32, bytes by width", "[precision]") {
  const WorkloadTrace full = trace(Precision::fp32), tf32 = trace(Precision::tf32), half = trace(Precision::fp16);
  // 200 MFLOP of the product; its 1.2 M values (weights, inputs, outputs) take 4.8 or 2.4 us to move.
  CHECK(full.layers[1].times.forward.longest().value == Approx(200e-6));
  CHECK(tf32.layers[1].times.forward.longest().value == Approx(100e-6));
  CHECK(half.layers[1].times.forward.longest().value == Approx(50e-6));
  CHECK(half.layers[2].times.forward.longest().value == Approx(200e-6));
  CHECK(full.layers[1].output.value == 100 * 1000 * 4);
  CHECK(tf32.layers[1].output.value == 100 * 1000 * 4);
  CHECK(half.layers[1].output.value == 100 * 1000 * 2);
  CHECK(half.layers[1].gradients.front().bytes.value == 2e6);
  // 12 bytes a weight are moved by plain SGD either way: 4 + 4 + 4, or 2 + 4 + 4 + 2 with an fp32 copy.
  CHECK(full.layers[1].times.update.longest().value == Approx(12e-6));
  CHECK(half.layers[1].times.update.longest().value == Approx(12e-6));
}

TEST_CASE("mixed precision with Adam keeps 16 bytes a parameter", "[precision]") {
  // Rajbhandari et al. 2020, 3.1: 2 + 2 for weights and gradients, 12 for the optimizer.
  const MemoryUse half = replica_memory(trace(Precision::fp16), Optimizer::adam);
  CHECK(half.parameters.value == 2e6);
  CHECK(half.gradients.value == 2e6);
  CHECK(half.optimizer_state.value == 12e6);
  const MemoryUse full = replica_memory(trace(Precision::tf32), Optimizer::adam);
  CHECK(full.parameters.value == 4e6);
  CHECK(full.optimizer_state.value == 8e6);
}

TEST_CASE("names of precisions", "[precision]") {
  for (const Precision precision : kPrecisions) CHECK(parse_precision(to_string(precision)) == precision);
  CHECK_THROWS_WITH(parse_precision("fp61"), Catch::Contains("did you mean 'fp16'?"));
  for (const char* name : {"amp", "mixed", "mixed_precision"})
    CHECK_THROWS_WITH(parse_precision(name), Catch::Contains("fp16 and bf16 mean mixed precision"));
}

}  // namespace epocast::precision_test
