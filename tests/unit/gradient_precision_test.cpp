// Gradients that travel in fp32 while weights have 16 bits: twice the bytes, whoever sends them, and nothing else.
#include <catch2/catch.hpp>

#include <string>

#include "experiments/result.hpp"
#include "experiments/scenario.hpp"
#include "experiments/study.hpp"
#include "tests/support/run_study.hpp"

namespace epocast::gradient_precision_test {

namespace {

constexpr double kParameters = 109684736;  // 8 blocks of 12,596,224, tables of 8192 and 512 tokens of 1024, a last norm

ScenarioResult run(const std::string& stack, const std::string& strategy) {
  const std::string study =
      "study: g\nplatform: dgx_h100_pod_4\nworkers: 8\n"
      "model: {name: gpt, layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 8192}\n"
      "dataset: {samples: 51200}\nbatch: {per_replica: 8}\nprecision: bf16\ncompute: roofline\noptimizer: adam\n"
      "collective: {algorithm: ring}\nstack: " +
      stack + "\nstrategy: " + strategy + "\n";
  return testing::run_study(study);
}

double sent(const std::string& stack, const std::string& strategy) {
  return run(stack, strategy).comm_bytes_per_iteration;
}

}  // namespace

TEST_CASE("fp32 gradients are pushed and scattered, 16-bit weights pulled and gathered", "[stack]") {
  const std::string fp32 = "{name: ideal, gradients: fp32}";
  CHECK(sent("ideal", "data_parallel") == Approx(14 * 2 * kParameters));
  CHECK(sent(fp32, "data_parallel") == Approx(14 * 4 * kParameters));
  CHECK(sent("ideal", "{name: sharded_data_parallel, stage: 2}") == Approx(7 * (2 + 2) * kParameters));
  CHECK(sent(fp32, "{name: sharded_data_parallel, stage: 2}") == Approx(7 * (4 + 2) * kParameters));
  const std::string server = "{name: parameter_server, location: dedicated}";
  CHECK(sent("ideal", server) == Approx(8 * (2 + 2) * kParameters));
  CHECK(sent(fp32, server) == Approx(8 * (4 + 2) * kParameters));
  // Parameters are what replicas average.
  CHECK(sent(fp32, "{name: local_sgd, period: 1}") == Approx(14 * 2 * kParameters));
}

TEST_CASE("what compression leaves of a gradient does not depend on the precision that it had",
          "[compression][stack]") {
  const std::string fp32 = "{name: ideal, gradients: fp32}", int8 = "{name: data_parallel, compression: int8}";
  CHECK(sent("ideal", int8) == Approx(8 * 7 * kParameters).epsilon(1e-5));  // and a scale a bucket
  CHECK(sent(fp32, int8) == Approx(8 * 7 * kParameters).epsilon(1e-5));
  CHECK(sent(fp32, "{name: data_parallel, compression: fp16}") == Approx(14 * 2 * kParameters));
}

TEST_CASE("experts: their share of a layer is that of its gradients, in whatever precision these travel", "[stack]") {
  const auto mixture = [](const std::string& gradients) {
    const std::string study =
        "study: m\nplatform: dgx_h100\nworkers: 8\nmodel: {name: mixtral, layers: 2}\ndataset: {samples: 8000}\n"
        "batch: {per_replica: 1}\nprecision: bf16\ncompute: roofline\noptimizer: adam\nstack: {name: ideal, "
        "gradients: " +
        gradients + "}\nstrategy: {name: megatron, expert: 2, distributed_optimizer: true}\n";
    return testing::run_study(study);
  };
  const ScenarioResult wide = mixture("fp32"), narrow = mixture("as_weights");
  CHECK(wide.compute_s == Approx(narrow.compute_s));
  // Two bytes more for each parameter of a device: half of 8 experts, attention (grouped by 4), router and norms of two
  // layers, embedding and head.
  const double hidden = 4096, layer = 4 * 3 * hidden * 14336 + 2.5 * hidden * hidden + 8 * hidden + 2 * hidden;
  CHECK(wide.peak_memory_bytes.value() - narrow.peak_memory_bytes.value() ==
        Approx(2 * (2 * layer + 2 * 32000 * hidden + hidden)).epsilon(1e-9));
}

TEST_CASE("servers keep fp32 state of 16-bit weights", "[stack]") {
  const auto memory = [](const std::string& strategy) { return run("ideal", strategy).peak_memory_bytes.value(); };
  const double difference =
      memory("{name: parameter_server, location: device, servers: 8, placement: even}") - memory("data_parallel");
  // An eighth of parameters, gradient and 12 bytes of state come; the state goes.
  CHECK(difference == Approx((2 + 2 + 12) * kParameters / 8 - 12 * kParameters));
}

}  // namespace epocast::gradient_precision_test
