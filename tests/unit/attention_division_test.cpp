// Attention divided over a context axis and a tensor axis: its kernels do the work of the whole, and heads keep their
// size.
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "costmodels/layer_kernels.hpp"
#include "costmodels/register.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::attention_division_test {

namespace {

constexpr KernelPass kPasses[] = {KernelPass::forward, KernelPass::backward_data, KernelPass::backward_weights};

Model model_named(const std::string& text) {
  return load_model_named(ConfigNode::load_text("model: " + text, "study.yaml").at("model"), EPOCAST_SOURCE_DIR);
}

DividedModel divide(DividedModel model, const std::string& body, int parts) {
  const ConfigNode node = ConfigNode::load_text("{}", "options");
  return builtin_bodies().make(body, node, node)->divide(std::move(model), parts, node);
}
Model part_of(const Model& model, const std::string& body, int parts) {
  return *divide(DividedModel::whole(model), body, parts).part;
}

const Layer& layer_of(const Model& model, const std::string& name) {
  return *std::ranges::find_if(model.layers, [&](const Layer& layer) { return layer.name.ends_with(name); });
}

/// 4 heads of 16 features, as many of keys and values as given, 16 positions; attention is causal and fused.
std::shared_ptr<const Model> small_llama(int kv_heads) {
  return testing::small_model("llama", 1, "hidden: 64, inner: 96, kv_heads: " + std::to_string(kv_heads));
}

struct Work {
  double flop = 0, scores = 0;
};

Work work(const Layer& layer, KernelPass pass, const KernelStyle& style) {
  Work out;
  for (const LayerKernel& kernel : layer_kernels(layer, 4, pass, style)) {
    const KernelWork of_kernel = kernel_work(kernel.shape);
    out.flop += kernel.repeats * of_kernel.flop;
    out.scores += kernel.repeats * of_kernel.scores;
  }
  return out;
}

}  // namespace

TEST_CASE("kernels of all ranks of a context axis do the work of the whole", "[composition][context]") {
  Model packed = *small_llama(2);  // attention to a quarter of the positions, as with sequences of unequal length
  for (Layer& layer : packed.layers)
    if (layer.kind == LayerKind::attention)
      for (double* flop : {&layer.forward_flop, &layer.backward_data_flop}) *flop /= 4;
  for (const Model& model : {*small_llama(4), *small_llama(2), packed, *testing::small_transformer(1),
                             model_named("{name: llama3_8b, layers: 1, sequence: 131072}")})
    for (const int c : {2, 4, 8}) {
      const Model part = part_of(model, "context", c);
      for (std::size_t l = 0; l < model.layers.size(); ++l)
        for (const KernelPass pass : kPasses)
          for (const bool fused_attention : {false, true}) {
            INFO(model.name << ", " << model.layers[l].name << " of " << c << ", " << to_string(pass));
            const KernelStyle style = kernel_style(Precision::bf16, fused_attention);
            const Work all = work(model.layers[l], pass, style), own = work(part.layers[l], pass, style);
            CHECK(c * own.flop == Approx(all.flop).epsilon(1e-12));
            CHECK(c * own.scores == Approx(all.scores).epsilon(1e-12));
          }
    }
}

TEST_CASE("causal attention over a context axis: a share of the queries, all keys", "[composition][context]") {
  // 16 positions on 4 devices: 4 queries that read 16 keys, 8.5 on average, as in the whole.
  const auto whole = small_llama(2);
  const auto kernel = [](const Model& model) {
    const auto kernels =
        layer_kernels(layer_of(model, "attention"), 1, KernelPass::forward, kernel_style(Precision::bf16, true));
    REQUIRE(kernels.size() == 1);
    return kernels.front().shape;
  };
  const KernelShape all = kernel(*whole), own = kernel(part_of(*whole, "context", 4));
  const std::string sizes = " key_features=16 value_features=16 causal=1";
  CHECK(all.text() == "batch=1 heads=4 kv_heads=2 queries=16 keys=16" + sizes);
  CHECK(own.text() == "batch=1 heads=4 kv_heads=2 queries=4 keys=16" + sizes);
  CHECK(kernel_work(all).scores == 4 * 16 * 8.5);
  CHECK(kernel_work(own).scores == 4 * 4 * 8.5);
  CHECK(kernel_work(own).longest_row == kernel_work(all).longest_row);
  CHECK(parse_kernel_shape("attention", "forward", own.text()).text() == own.text());
  CHECK_THROWS_WITH(parse_kernel_shape("attention", "forward", "batch=1 heads=4 kv_heads=2 queries=16 keys=4" + sizes),
                    Catch::Contains("causal=1 needs at least as many keys as queries"));
}

TEST_CASE("c devices along a context axis compute at most c times as fast as one", "[composition][context]") {
  const Model model = model_named("{name: llama3_8b, layers: 1, sequence: 131072}");
  Device device;
  device.model = "NVIDIA H100 SXM5 80GB";
  device.peak_rate = FlopPerSecond(66.9e12);
  device.other_rates[Precision::bf16] = FlopPerSecond(989.4e12);
  device.memory_bandwidth = BytesPerSecond(3352e9);
  // What lies between measured kernels differs by a few per mille from shape to shape.
  for (const auto& [compute, slack] :
       {std::pair{"{cost_model: roofline}", 1e-9}, {"{cost_model: fitted, calibration: h100_bf16}", 5e-3}}) {
    const auto cost = make_cost_model(ConfigNode::load_text(compute, "study.yaml"), {.data_dir = EPOCAST_SOURCE_DIR,
                                                                                     .model = &model,
                                                                                     .device = &device,
                                                                                     .optimizer = Optimizer::sgd,
                                                                                     .precision = Precision::bf16});
    const auto trace = [&](const Model& of) { return make_trace(of, *cost, 1, device, Precision::bf16); };
    const auto of_attention = [](const WorkloadTrace& made) {
      for (const LayerTrace& layer : made.layers)
        if (layer.kind == LayerKind::attention) return (layer.times.forward + layer.times.backward()).longest().value;
      return 0.0;
    };
    const WorkloadTrace one = trace(model);
    for (const int c : {2, 4, 8}) {
      INFO(compute << " on " << c);
      const WorkloadTrace part = trace(part_of(model, "context", c));
      CHECK(c * part.compute_time().longest().value >= one.compute_time().longest().value * (1 - slack));
      CHECK(c * of_attention(part) == Approx(of_attention(one)).epsilon(0.03));
    }
  }
}

TEST_CASE("heads of keys and values that are fewer than devices are copied, with their weights and products",
          "[composition][tensor]") {
  // 4 heads of 16 features and 2 of keys and values on 4 devices: each has one of either kind, (1 + 2) x 16 = 48
  // columns of 64 inputs.
  const auto model = small_llama(2);
  const Model part = part_of(*model, "tensor", 4);
  const Layer &qkv = layer_of(part, "qkv"), &rotary = layer_of(part, "rotary"),
              &attention = layer_of(part, "attention");
  CHECK(qkv.output.channels == 48);
  CHECK(qkv.parameter_count() == 64 * 48);
  CHECK(qkv.forward_flop == Approx(2.0 * 64 * 48 * 16));
  CHECK(rotary.output.channels == 48);
  CHECK(rotary.forward_flop == Approx(3.0 * (1 + 1) * 16 * 16));  // heads of queries and keys are turned
  CHECK(attention.heads == 1);
  CHECK(attention.kv_heads == 1);
  CHECK(attention.input.channels == 48);
  CHECK(attention.input_values == 48 * 16);
  CHECK(attention.output.channels == 16);
  CHECK(attention.inner_values == 16);  // a logarithm for each query of a head
  CHECK(attention.forward_flop == Approx(layer_of(*model, "attention").forward_flop / 4));
  // The same as of a network that has as many heads of keys and values as devices, in every layer.
  const Model other = part_of(*small_llama(4), "tensor", 4);
  for (std::size_t l = 0; l < part.layers.size(); ++l) {
    const Layer &a = part.layers[l], &b = other.layers[l];
    INFO(a.name);
    CHECK(a.input == b.input);
    CHECK(a.output == b.output);
    CHECK(a.input_values == b.input_values);
    CHECK(a.kept_values() == b.kept_values());
    CHECK(a.parameter_count() == b.parameter_count());
    for (const auto flop : {&Layer::forward_flop, &Layer::backward_data_flop, &Layer::backward_weights_flop})
      CHECK(a.*flop == Approx(b.*flop).epsilon(1e-12));
  }
}

TEST_CASE("heads of a published network keep their 128 features on any tensor axis", "[composition][tensor]") {
  // 64 heads, 8 of keys and values, of 8192 / 64 = 128 features.
  const Model model = model_named("{name: llama3_70b, layers: 1}");
  for (const int t : {2, 4, 8, 16, 32, 64}) {
    INFO(t);
    const Model part = part_of(model, "tensor", t);
    const std::int64_t heads = 64 / t, shared = std::max(1, 8 / t);
    const Layer& attention = layer_of(part, "attention");
    CHECK(attention.input.channels == (heads + 2 * shared) * 128);
    const auto& parameters = layer_of(part, "qkv").parameters;
    REQUIRE(parameters.size() == 1);
    // Shares of many values are rounded up to whole ones.
    CHECK(static_cast<double>(parameters.front().values) ==
          Approx(8192.0 * 128 * static_cast<double>(heads + 2 * shared)).margin(1));
    const auto kernels = layer_kernels(attention, 1, KernelPass::forward, kernel_style(Precision::bf16, true));
    REQUIRE(kernels.size() == 1);
    const auto& shape = std::get<AttentionShape>(kernels.front().shape.of);
    CHECK(shape.key_features == 128);
    CHECK(shape.value_features == 128);
    CHECK(shape.heads == heads);
    CHECK(shape.kv_heads == shared);
    CHECK(shape.queries == 8192);
    CHECK(shape.keys == 8192);
  }
}

TEST_CASE("copied heads: of three inputs, and of what goes round a context axis", "[composition][tensor][context]") {
  // 4 heads of 16 features, 2 of keys and values, on 4 devices: 16 columns of each product.
  const Model model = parse_model(
      "model: m\nsource: a test\ninput: {channels: 64, width: 16}\nlayers:\n  - {layer_norm: below}\n"
      "  - {linear: q, units: 64}\n  - {linear: k, units: 32, input: below}\n  - {linear: v, units: 32, input: below}\n"
      "  - {attention: a, inputs: [q, k, v], heads: 4, kv_heads: 2}\n  - {linear: out, units: 64}\n",
      "m.yaml");
  const Model part = part_of(model, "tensor", 4);
  for (const char* product : {"q", "k", "v"}) CHECK(layer_of(part, product).output.channels == 16);
  CHECK(layer_of(part, "a").input.channels == 16);
  CHECK(layer_of(part, "a").input_values == 3 * 16 * 16);
  CHECK(layer_of(part, "out").input.channels == 16);
  // Keys and values of 16 positions: 2 x 2 heads of 16 features in all, of which each device has half, not a quarter.
  const auto llama = small_llama(2);
  const DividedModel divided = divide(divide(DividedModel::whole(*llama), "context", 2), "tensor", 4);
  const auto attention = std::ranges::find(llama->layers, LayerKind::attention, &Layer::kind) - llama->layers.begin();
  const SampleExchanges& own = divided.exchanges[static_cast<std::size_t>(attention)];
  REQUIRE(own.during_forward.size() == 1);
  CHECK(own.during_forward.front().values == 2 * 2 * 16 * 16 / 2);
}

}  // namespace epocast::attention_division_test
