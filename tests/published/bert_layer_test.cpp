// A layer of BERT-large alone, in fp16 and by PyTorch's single operations: the kernels of `v100_fp16` and
// `a100_pcie_bf16`, with nothing fitted to layers, against the best rates that were measured of one
// (github:mli/transformers-benchmarks README.md 3370b2b3a0ad, micro_bench.ipynb: transformers' BertLayer, PyTorch 1.13,
// sequences of 128; on the RTX 3090 Ti, whose table is printed whole, the best is the largest batch, 128). The A100 is
// not named more closely; its products reach 230 TFLOP/s, so it is taken for one on PCIe. What whole runs of BERT lose
// beyond that is not in their layers.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <string>

#include "costmodels/register.hpp"
#include "sim/cost_model.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::bert_layer_test {

namespace {

constexpr std::int64_t kBatch = 128, kTokens = 128, kWidth = 1024;

/// Rates in FLOP/s, in fp32 and fp16, and B/s.
Device card(const char* model, double fp32, double fp16, double memory) {
  Device out;
  out.model = model;
  out.peak_rate = FlopPerSecond(fp32);
  out.other_rates[Precision::fp16] = FlopPerSecond(fp16);
  out.memory_bandwidth = BytesPerSecond(memory);
  return out;
}

/// Times of `layers` layers and what surrounds them, in s.
struct Passes {
  double forward = 0, backward = 0;
};

Passes passes(int layers, const Device& device, const std::string& calibration) {
  const std::string text = fmt::format("model: {{name: bert_large, layers: {}, sequence: {}}}", layers, kTokens);
  const Model model = load_model_named(ConfigNode::load_text(text, "study.yaml").at("model"), EPOCAST_SOURCE_DIR);
  const ConfigNode compute =
      ConfigNode::load_text("{cost_model: fitted, calibration: " + calibration + ", attention: eager}", "study.yaml");
  const auto cost = make_cost_model(compute, {.data_dir = EPOCAST_SOURCE_DIR,
                                              .model = &model,
                                              .device = &device,
                                              .optimizer = Optimizer::sgd,
                                              .precision = Precision::fp16});
  Passes out;
  for (const LayerTrace& layer : make_trace(model, *cost, kBatch, device, Precision::fp16).layers) {
    out.forward += layer.times.forward.longest().value;
    out.backward += layer.times.backward().longest().value;
  }
  return out;
}

/// Checks the rate in TFLOP/s of both passes of a layer, counted as in the notebook: three times what the forward pass
/// takes.
void check(const Device& device, const std::string& calibration, double measured) {
  const Passes two = passes(2, device, calibration), four = passes(4, device, calibration);
  const double tokens = kBatch * kTokens;
  const double flop = 24 * tokens * kWidth * kWidth + 4 * tokens * kTokens * kWidth;
  const double layer = (four.forward - two.forward + four.backward - two.backward) / 2;
  INFO(calibration << ": " << 3 * flop / layer / 1e12 << " TFLOP/s, measured " << measured);
  CHECK(3 * flop / layer / 1e12 == Approx(measured).epsilon(0.08));
}

}  // namespace

TEST_CASE("a layer of BERT takes what a microbenchmark of one says, within 8 %") {
  check(card("NVIDIA Tesla V100 SXM2 16GB", 15.7e12, 125e12, 900e9), "v100_fp16", 67);
  check(card("NVIDIA A100 PCIe 80GB", 19.5e12, 312e12, 1935e9), "a100_pcie_bf16", 136);
}

}  // namespace epocast::bert_layer_test
