// Low-rank adapters: what is trained, computed, kept and sent, by formula.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "sim/cost_model.hpp"
#include "sim/memory.hpp"
#include "tests/support/conservation.hpp"
#include "tests/support/error_message.hpp"
#include "tests/support/simulate.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::lora_test {

using testing::compile_transformer;

namespace {

/// Two layers of Llama: products of 64 x 192, 64 x 64, 64 x 192 and 96 x 64.
std::shared_ptr<const Model> adapted(const std::string& lora) {
  return testing::small_model("llama", 2, "hidden: 64, inner: 96" + (lora.empty() ? "" : ", lora: " + lora));
}

constexpr double kOfAll = 4 * (64 + 192) + 4 * (64 + 64) + 4 * (64 + 192) + 4 * (96 + 64);  // a layer's, of rank 4

const Layer& named(const Model& model, const std::string& name) {
  return *std::ranges::find(model.layers, name, &Layer::name);
}

template <class Of>
double sum(const Model& model, Of of) {
  double out = 0;
  for (const Layer& layer : model.layers) out += static_cast<double>(of(layer));
  return out;
}

double sent(int workers, const std::string& options, const Model& model) {
  const testing::Star star(workers, 1e9, 1e-6);
  const TrainingStep step = compile_transformer(star.cluster(), workers, "composition", options,
                                                {.model = std::make_shared<const Model>(model), .batch = 8});
  return testing::sum(testing::bytes_sent_per_iteration(step.graph, static_cast<std::size_t>(workers)));
}

DividedModel divided(const Model& model, const std::string& options, int parts) {
  const ConfigNode node = ConfigNode::load_text(options, "options");
  return builtin_bodies().make("tensor", node, node)->divide(DividedModel::whole(model), parts, node);
}

}  // namespace

TEST_CASE("adapters: their values are trained and nothing else; products are added", "[lora]") {
  const auto plain = adapted(""), model = adapted("4");
  CHECK(static_cast<double>(model->trained_count()) == 2 * kOfAll);
  CHECK(static_cast<double>(model->parameter_count()) == static_cast<double>(plain->parameter_count()) + 2 * kOfAll);
  // A value of an adapter is a multiply-add for each of 16 positions; the sum of both outputs is an addition for each
  // of 192 + 64 + 192 + 64 features.
  CHECK(model->forward_flop() == Approx(plain->forward_flop() + 2 * 16 * (2 * kOfAll + 192 + 64 + 192 + 64)));
  CHECK(sum(*model, [](const Layer& l) { return l.backward_weights_flop; }) == Approx(2 * 16 * 2 * kOfAll));
}

TEST_CASE("adapters: gradients go back to the first of them, and frozen products keep no input", "[lora]") {
  const auto model = adapted("{rank: 4, layers: [mlp_down]}");
  CHECK(model->trained_count() == 2 * 4 * (96 + 64));
  CHECK(!named(*model, "layer.0.mlp_up").needs_gradient);
  CHECK(named(*model, "layer.0.mlp_down.lora_a").backward_data_flop == 0);
  CHECK(named(*model, "layer.0.mlp_down.lora_b").backward_data_flop == 2 * 16 * 4 * 64);
  const Layer& later = named(*model, "layer.1.mlp_up");
  CHECK(later.backward_data_flop == 2 * 16 * 64 * 192);
  CHECK(later.backward_weights_flop == 0);
  CHECK(!later.backward_reads_input);
  CHECK(later.inputs == std::vector<int>{static_cast<int>(&named(*model, "layer.1.norm_2") - model->layers.data())});
}

TEST_CASE("adapters: memory of frozen parameters once, of trained ones with gradients and state", "[lora]") {
  const auto model = adapted("4");
  const testing::FixedRate cost;
  const MemoryUse use = replica_memory(make_trace(*model, cost, 1, Device{}), Optimizer::adam);
  CHECK(use.parameters == Bytes(4 * static_cast<double>(model->parameter_count())));
  CHECK(use.gradients == Bytes(4 * 2 * kOfAll));
  CHECK(use.optimizer_state == Bytes(8 * 2 * kOfAll));
  const MemoryUse full = replica_memory(make_trace(*adapted(""), cost, 1, Device{}), Optimizer::adam);
  CHECK(use.activations < full.activations);
}

TEST_CASE("adapters: replicas sum gradients of what is trained, and gather all that is sharded", "[lora]") {
  const auto model = adapted("4");
  const double trained = 4 * 2 * kOfAll, all = 4 * static_cast<double>(model->parameter_count());
  for (const int n : {2, 4}) {
    const std::string mesh = "{mesh: {data: rest}";
    CHECK(sent(n, mesh + "}", *model) == Approx(2 * (n - 1) * trained));
    const auto sharded = [&](int stage) {
      return sent(n, mesh + ", synchronisation: {name: sharded, stage: " + std::to_string(stage) + "}}", *model);
    };
    CHECK(sharded(1) == Approx(2 * (n - 1) * trained));
    CHECK(sharded(3) == Approx((n - 1) * (2 * all + trained)));  // for both passes
  }
}

TEST_CASE("adapters on a tensor axis: the small side is whole, the large one lies as the layer's", "[lora]") {
  for (const bool positions : {false, true}) {
    const DividedModel out = divided(*adapted("4"), positions ? "{sequence_parallel: true}" : "{}", 2);
    const auto values = [&](const char* name) { return named(*out.part, name).parameters.front().values; };
    CHECK(values("layer.0.qkv") == 64 * 192 / 2);
    CHECK(values("layer.0.qkv.lora_a") == 64 * 4);
    CHECK(values("layer.0.qkv.lora_b") == 4 * 192 / 2);
    CHECK(values("layer.0.projection.lora_a") == 64 / 2 * 4);
    CHECK(values("layer.0.projection.lora_b") == 4 * 64);
    CHECK(named(*out.part, "layer.0.qkv.lora_sum").output.channels == 96);
    CHECK(named(*out.part, "layer.0.attention").heads == 2);
    // The halves of the small side are added up: 4 values for each of 16 positions.
    const auto at = static_cast<std::size_t>(&named(*out.part, "layer.0.projection.lora_a") - out.part->layers.data());
    REQUIRE(out.exchanges[at].after_forward.size() == 1);
    CHECK(out.exchanges[at].after_forward.front().values == 4 * 16);
    CHECK(out.exchanges[at].after_forward.front().op ==
          (positions ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce));
  }
}

TEST_CASE("adapters that make no sense are refused", "[lora]") {
  using testing::message;
  CHECK_THAT(message([] { adapted("{rank: 4, layers: [qvk]}"); }),
             Catch::Contains("no linear layer 'qvk' (did you mean 'qkv'?)"));
  CHECK_THAT(message([] { adapted("64"); }), Catch::Contains("a rank of 64 is no less than a side of 'layer.0.qkv'"));
  CHECK_THAT(message([] { adapted("{rank: 4, alpha: 8}"); }), Catch::Contains("alpha"));
}

TEST_CASE("heads, words and columns that a tensor axis does not divide are padded, and it is said", "[bodies]") {
  // 4 heads of 16 features on 3 devices: 2 each, so that 6 x 16 columns stand for 64; of 100 words 34 each.
  const auto model = std::make_shared<const Model>(
      load_model_named(ConfigNode::load_text(
                           "{name: gpt2, layers: 1, width: 64, heads: 4, sequence: 16, vocabulary: 100}", "small.yaml"),
                       EPOCAST_SOURCE_DIR));
  const DividedModel out = divided(*model, "{}", 3);
  CHECK(named(*out.part, "h.0.attn").heads == 2);
  CHECK(named(*out.part, "h.0.attn").output.channels == 32);
  CHECK(named(*out.part, "h.0.attn").forward_flop == Approx(named(*model, "h.0.attn").forward_flop / 2));
  CHECK(out.part->layers[1].parameters.front().values == 34 * 64);
  CHECK(std::ranges::count(out.notes, "4 heads, which a tensor axis of 3 does not divide, are padded to 6") == 1);
  CHECK(std::ranges::count(out.notes, "100 words, which a tensor axis of 3 does not divide, are padded to 102") == 1);
}

}  // namespace epocast::lora_test
