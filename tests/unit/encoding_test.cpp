// Bytes and coding times of compressed gradients: 4 MB are a million values.
#include <catch2/catch.hpp>

#include <string>

#include "strategies/register.hpp"
#include "strategies/step/encoding.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/synthetic.hpp"

namespace epocast::encoding_test {

namespace {

Encoding make(const std::string& options) { return Encoding(ConfigNode::load_text(options, "options")); }

}  // namespace

TEST_CASE("bytes of a million values", "[compression]") {
  const Bytes gradients(4e6);
  CHECK(make("{}").compressed(gradients).value == 4e6);
  CHECK(make("{compression: fp16}").compressed(gradients).value == 2e6);
  CHECK(make("{compression: int8}").compressed(gradients).value == 1e6 + 4);
  CHECK(make("{compression: one_bit}").compressed(gradients).value == 125000 + 8);
  CHECK(make("{compression: top_k, top_k: 0.001}").compressed(gradients).value == 1000 * 8);
  CHECK(make("{compression: top_k, top_k: 1e-9}").compressed(gradients).value == 8);  // at least one
}

TEST_CASE("sums on the way, or everything to everybody", "[compression]") {
  const Collective half = make("{compression: fp16}").sum(Bytes(4e6), {}, GroupId{}, 8);
  CHECK(half.op == CollectiveOp::all_reduce);
  CHECK(half.bytes.value == 2e6);
  const Collective bits =
      make("{compression: one_bit}")
          .sum(Bytes(4e6), {.algorithm = CollectiveAlgorithm::double_binary_tree, .gamma = 1e-9}, GroupId{}, 8);
  CHECK(bits.op == CollectiveOp::all_gather);
  CHECK(bits.algorithm == default_algorithm(CollectiveOp::all_gather));  // a double tree cannot gather
  CHECK(bits.bytes.value == 8 * 125008);
  CHECK(bits.gamma == 0);
}

TEST_CASE("coding reads and writes memory", "[compression]") {
  const Device device = testing::cluster_of(1).devices.front();  // 500 GB/s
  const Encoding none = make("{}"), bits = make("{compression: one_bit}");
  CHECK(none.encode_time(Bytes(4e6), device).value == 0);
  CHECK(none.decode_time(Bytes(4e6), device, 8).value == 0);
  CHECK(bits.encode_time(Bytes(4e6), device).value == Approx((4e6 + 8e6 + 125008) / 500e9));
  CHECK(bits.decode_time(Bytes(4e6), device, 8).value == Approx((8 * 125008 + 4e6) / 500e9));
  Device unknown = device;
  unknown.memory_bandwidth = {};
  CHECK_THAT(testing::message([&] { bits.encode_time(Bytes(1), unknown); }),
             Catch::Contains("has no memory bandwidth"));
}

TEST_CASE("a share without top-k is a mistake", "[compression]") {
  CHECK_THAT(testing::message([] { make("{compression: int8, top_k: 0.1}"); }),
             Catch::Contains("top_k: a share of values has no effect"));
}

TEST_CASE("what compression does not send is kept by each device that sends", "[compression]") {
  // Gradients of 10 and 30 MB, or parameters where these are sent: 40 MB more with what keeps the rest.
  const Cluster cluster = testing::cluster_of(5);
  const TraceSource trace = [](std::int64_t batch) {
    return testing::chain({testing::layer("A", 1, 2, 0, {10e6}), testing::layer("B", 1, 2, 0, {30e6})}, batch);
  };
  const auto gradients = [&](const std::string& strategy, const std::string& compression) {
    const ConfigNode node = ConfigNode::load_text("{compression: " + compression + "}", "options");
    const TrainingStep step =
        builtin_strategies().make(strategy, node, node)->compile({cluster, {0, 1, 2, 3}, 4, trace, {}});
    return step.memory.front().use.gradients.value;
  };
  for (const std::string strategy :
       {"data_parallel", "zero1", "zero2", "parameter_server", "downpour", "easgd", "local_sgd", "gossip"}) {
    INFO(strategy);
    const double sent = gradients(strategy, "none");
    CHECK(gradients(strategy, "int8") == sent);
    CHECK(gradients(strategy, "one_bit") == sent + 40e6);
    CHECK(gradients(strategy, "top_k") == sent + 40e6);
  }
}

}  // namespace epocast::encoding_test
