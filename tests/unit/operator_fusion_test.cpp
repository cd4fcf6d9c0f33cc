// Kernels made of cheap operations: bytes counted by hand, and what any network must keep.
#include "workloads/operators/fusion.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/data_file.hpp"
#include "workloads/model_reader.hpp"
#include "workloads/operators/operator_graph_builder.hpp"

namespace epocast::operator_fusion_test {
namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;

constexpr OperatorGraphOptions kPlain{.optimizer = Optimizer::sgd, .gradients = GradientUse::direct};
constexpr OperatorGraphOptions kFused{
    .optimizer = Optimizer::sgd, .gradients = GradientUse::direct, .fused_kernels = true};

/// 8 samples of 100 values between two products.
Model between(const std::string& layer) {
  return parse_model(
      "model: m\ninput: {channels: 4}\nlayers: [{fc: f, units: 100}, " + layer + ", {fc: h, units: 100}]\n", "m.yaml");
}

struct Traffic {
  int kernels = 0;
  double read = 0, written = 0;
};
/// Of what moves more than 1000 bytes in a layer's pass.
Traffic traffic(const OperatorGraph& graph, const std::string& layer, OperatorPhase phase) {
  Traffic out;
  for (std::size_t n = 0; n < graph.size(); ++n) {
    if (graph.layers[graph.layer[n]] != layer || graph.phase[n] != phase || graph.bytes_written[n] < 1000) continue;
    ++out.kernels;
    out.read += graph.bytes_read[n];
    out.written += graph.bytes_written[n];
  }
  return out;
}

constexpr double kTensor = 4 * 8 * 100;  // bytes
constexpr double kConstants = 256;       // bytes that constants and shapes may add

}  // namespace

TEST_CASE("GELU is one kernel each way, and its derivative is computed from its input") {
  const Model model = between("{gelu: g}");
  const OperatorGraph plain = build_operator_graph(model, 8, kPlain), graph = build_operator_graph(model, 8, kFused);
  // The tanh form: power, 3 products with constants, 2 sums, tanh, product.
  CHECK(traffic(plain, "g", OperatorPhase::forward).kernels == 8);
  const Traffic forward = traffic(graph, "g", OperatorPhase::forward);
  CHECK(forward.kernels == 1);
  CHECK(forward.read == Approx(kTensor).margin(kConstants));
  CHECK(forward.written == kTensor);
  const Traffic backward = traffic(graph, "g", OperatorPhase::backward);
  CHECK(backward.kernels == 1);
  CHECK(backward.read == Approx(2 * kTensor).margin(kConstants));  // the input and the output's gradient
  CHECK(backward.written == kTensor);
}

TEST_CASE("a dropout keeps a byte for each value") {
  const Model model = between("{dropout: d}");
  const OperatorGraph graph = build_operator_graph(model, 8, kFused);
  const Traffic forward = traffic(graph, "d", OperatorPhase::forward);
  CHECK(forward.kernels == 1);
  CHECK(forward.read == Approx(kTensor).margin(kConstants));
  CHECK(forward.written == kTensor + kTensor / 4);  // the output and its mask
  const Traffic backward = traffic(graph, "d", OperatorPhase::backward);
  CHECK(backward.kernels == 1);
  CHECK(backward.read == Approx(kTensor + kTensor / 4).margin(kConstants));
  CHECK(backward.written == kTensor);
}

TEST_CASE("gradients of constants do not run, gated or not") {
  // Leaky ReLU multiplies with a constant: of the product's two gradients one is needed. Select makes two more, a
  // constant's is none of them.
  const Model model = between("{leaky_relu: l}");
  for (const GradientUse use : {GradientUse::direct, GradientUse::minimize}) {
    const OperatorGraph graph = build_operator_graph(model, 8, {Optimizer::sgd, use});
    int products = 0, unused = 0;
    for (std::size_t n = 0; n < graph.size(); ++n) {
      if (graph.layers[graph.layer[n]] != "l" || graph.operation_of(n) != "Mul") continue;
      products += graph.phase[n] == OperatorPhase::backward;
      unused += graph.phase[n] == OperatorPhase::unused;
    }
    CHECK(products == 1);
    CHECK(unused == 1);
  }
}

TEST_CASE("every network keeps its order and its work, and moves fewer bytes") {
  for (const char* name : {"resnet20", "gpt2", "bert_base", "word_rnn", "e3d_lstm", "trn", "vgg16", "inception_v3"}) {
    INFO(name);
    const Model model =
        load_model_named(ConfigNode::load_text("model: " + std::string(name), "study.yaml").at("model"), kRoot);
    for (const GradientUse use : {GradientUse::direct, GradientUse::minimize}) {
      const OperatorGraph plain = build_operator_graph(model, 2, {Optimizer::sgd, use});
      const OperatorGraph graph = fuse_kernels(plain);
      REQUIRE(graph.size() < plain.size());
      REQUIRE(graph.in_begin.size() == graph.size() + 1);
      bool is_ordered = true;
      for (std::size_t n = 0; n < graph.size(); ++n)
        for (const std::uint32_t p : graph.producers(n)) is_ordered = is_ordered && p < n;
      CHECK(is_ordered);
      const auto sum = [](const std::vector<double>& values) {
        return std::accumulate(values.begin(), values.end(), 0.0);
      };
      CHECK(sum(graph.flop) == Approx(sum(plain.flop)).epsilon(1e-9));
      CHECK(sum(graph.bytes_read) < sum(plain.bytes_read));
      CHECK(sum(graph.bytes_written) < sum(plain.bytes_written));
    }
  }
}

}  // namespace epocast::operator_fusion_test
