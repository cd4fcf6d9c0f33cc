// FLOP and memory of GPT-like networks against the formulas that their authors printed.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <string>

#include "costmodels/layer_kernels.hpp"
#include "costmodels/roofline.hpp"
#include "sim/cost_model.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::transformer_counts_test {

namespace {

struct Size {
  int layers, hidden, heads, sequence, vocabulary;
};

Model gpt(const Size& s, const std::string& more = "") {
  const std::string text =
      fmt::format("model: {{name: gpt, layers: {}, hidden: {}, heads: {}, sequence: {}, vocabulary: {}{}}}", s.layers,
                  s.hidden, s.heads, s.sequence, s.vocabulary, more);
  return load_model_named(ConfigNode::load_text(text, "study.yaml").at("model"), EPOCAST_SOURCE_DIR);
}

// Narayanan et al. 2021, Table 1: parameters of 1.7 G to 1 T; vocabulary 51,200, sequences of 2,048 tokens.
const Size kTable1[] = {{24, 2304, 24, 2048, 51200},   {30, 3072, 32, 2048, 51200},   {36, 4096, 32, 2048, 51200},
                        {40, 6144, 48, 2048, 51200},   {48, 8192, 64, 2048, 51200},   {60, 10240, 80, 2048, 51200},
                        {80, 12288, 96, 2048, 51200},  {96, 16384, 128, 2048, 51200}, {105, 20480, 128, 2048, 51200},
                        {128, 25600, 160, 2048, 51200}};

double product_flop(const Model& model, KernelPass pass, bool fused) {
  double sum = 0;
  for (const Layer& layer : model.layers)
    for (const LayerKernel& k : layer_kernels(layer, 1, pass, {Traffic::kernels, fused}))
      if (std::string(k.shape.family()) != "memory") sum += k.repeats * kernel_work(k.shape).flop;
  return sum;
}

}  // namespace

TEST_CASE("FLOP of matrix products are Megatron's to 0.1 %") {
  for (const Size& s : kTable1) {
    const Model model = gpt(s);
    const double l = s.layers, h = s.hidden, q = s.sequence, v = s.vocabulary;
    // Narayanan et al. 2021, appendix: a forward pass over B s tokens has 24 B s l h^2 (1 + s / 6h) + 2 B s h V FLOP,
    // a backward pass twice as many; with one more forward pass, equation 3: 96 B s l h^2 (1 + s / 6h + V / 16 l h).
    const double forward = 24 * q * l * h * h * (1 + q / (6 * h)) + 2 * q * h * v;
    INFO(l << " layers of " << h);
    CHECK(product_flop(model, KernelPass::forward, false) == Approx(forward).epsilon(1e-3));
    const double backward = product_flop(model, KernelPass::backward_data, false) +
                            product_flop(model, KernelPass::backward_weights, false);
    CHECK(backward == Approx(2 * forward).epsilon(1e-3));
    // Equation 2: P = 12 l h^2 (1 + 13 / 12h + (V + s) / 12 l h)
    CHECK(static_cast<double>(model.parameter_count()) ==
          Approx(12 * l * h * h * (1 + 13 / (12 * h) + (v + q) / (12 * l * h))).epsilon(1e-3));
  }
}

TEST_CASE("fused attention computes the same forward, half of it when causal, and the scores once more backward") {
  const Size s{2, 1024, 16, 2048, 51200};
  const double plain = product_flop(gpt(s), KernelPass::forward, true);
  CHECK(product_flop(gpt(s, ", fused: true"), KernelPass::forward, true) == Approx(plain).epsilon(1e-12));
  const double attention = 2.0 * 4 * 2048 * 2048 * 1024;  // both layers, scores and sum
  CHECK(plain - product_flop(gpt(s, ", fused: true, pairs: causal"), KernelPass::forward, true) ==
        Approx(attention * (1 - 2049.0 / 4096)).epsilon(1e-6));
  CHECK(product_flop(gpt(s, ", fused: true"), KernelPass::backward_data, true) -
            product_flop(gpt(s), KernelPass::backward_data, true) ==
        Approx(attention / 2).epsilon(1e-6));
}

TEST_CASE("activation memory is Korthikanti's to 0.1 %") {
  // Korthikanti et al. 2022 (arXiv 2205.05198), equation 1: a layer keeps s b h (34 + 5 a s / h) bytes in 16-bit
  // training with dropout; with selective recomputation 34 s b h (Table 2); with full recomputation its input, 2 s b h.
  Device device;
  device.peak_rate = FlopPerSecond(1e12);
  device.other_rates[Precision::bf16] = FlopPerSecond(1e13);
  device.memory_bandwidth = BytesPerSecond(1e12);
  const std::int64_t batch = 4;
  for (const Size& s : {Size{2, 1024, 16, 1024, 50304}, Size{2, 6144, 64, 2048, 51200}, Size{2, 12288, 96, 2048, 51200},
                        Size{2, 25600, 160, 2048, 51200}}) {
    const Model model = gpt(s);
    const WorkloadTrace trace =
        make_trace(model, Roofline({.precision = Precision::bf16}), batch, device, Precision::bf16);
    double kept = 0, of_attention = 0, input = 0;
    for (const LayerTrace& layer : trace.layers) {
      // What the second layer keeps: its own outputs and insides, with the first layer's output in place of its own.
      if (layer.name.starts_with("layer.1.") && layer.name != "layer.1.add_2") kept += layer.kept_activations.value;
      if (layer.name == "layer.0.add_2") kept += input = layer.kept_activations.value;
      if (layer.name == "layer.1.attention") of_attention = layer.inner.value;
    }
    const double sbh = static_cast<double>(s.sequence) * static_cast<double>(batch) * s.hidden;
    INFO(s.hidden);
    CHECK(kept == Approx(sbh * (34 + 5.0 * s.heads * s.sequence / s.hidden)).epsilon(1e-3));
    CHECK(kept - of_attention == Approx(34 * sbh).epsilon(1e-3));
    CHECK(input == Approx(2 * sbh).epsilon(1e-3));
  }
}

TEST_CASE("without dropout a layer keeps no masks") {
  const Size s{2, 1024, 16, 1024, 50304};
  for (const Layer& layer : gpt(s, ", dropout: 0").layers) CHECK(layer.mask_values == 0);
}

TEST_CASE("experts: parameters of all, FLOP of those chosen") {
  const auto mixtral = [](const std::string& more) {
    return load_model_named(ConfigNode::load_text("model: {name: mixtral, layers: 1" + more + "}", "s").at("model"),
                            EPOCAST_SOURCE_DIR);
  };
  const Model two = mixtral(""), one = mixtral(", chosen: 1");
  CHECK(two.parameter_count() == one.parameter_count());
  // One more MLP of 3 products of 4096 x 14336 for each of 4096 tokens, and SwiGLU's 5 FLOP per value.
  CHECK(two.forward_flop() - one.forward_flop() == Approx(4096.0 * (6.0 * 4096 * 14336 + 5 * 14336)));
  for (const KernelPass pass : {KernelPass::forward, KernelPass::backward_data, KernelPass::backward_weights})
    CHECK(product_flop(two, pass, true) - product_flop(one, pass, true) ==
          Approx(4096.0 * 6.0 * 4096 * 14336).epsilon(1e-12));
}

}  // namespace epocast::transformer_counts_test
