// Activations of a transformer layer under recomputation, and tokens and FLOP by which training is compared.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "costmodels/roofline.hpp"
#include "experiments/memory_settings.hpp"
#include "experiments/model_work.hpp"
#include "sim/cost_model.hpp"
#include "strategies/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::activation_memory_test {

namespace {

struct Size {
  int layers, hidden, heads, sequence;
};

Model gpt(const Size& s) {
  const std::string text =
      fmt::format("model: {{name: gpt, layers: {}, hidden: {}, heads: {}, sequence: {}, vocabulary: 51200}}", s.layers,
                  s.hidden, s.heads, s.sequence);
  return load_model_named(ConfigNode::load_text(text, "study.yaml").at("model"), EPOCAST_SOURCE_DIR);
}

MemorySettings settings(const std::string& recompute) {
  return read_memory_settings(ConfigNode::load_text("{recompute: " + recompute + "}", "study.yaml"));
}

WorkloadTrace trace_of(const Model& model, std::int64_t batch, const std::string& recompute) {
  Device device;
  device.peak_rate = FlopPerSecond(1e12);
  device.other_rates[Precision::bf16] = FlopPerSecond(1e13);
  device.memory_bandwidth = BytesPerSecond(1e12);
  WorkloadTrace trace = make_trace(model, Roofline({.precision = Precision::bf16}), batch, device, Precision::bf16);
  settings(recompute).apply(trace);
  return trace;
}

/// Of the second layer: its own outputs and insides, with the first layer's output in place of its own.
double kept(const WorkloadTrace& trace) {
  double sum = 0;
  for (const LayerTrace& layer : trace.layers)
    if ((layer.name.starts_with("layer.1.") && layer.name != "layer.1.add_2") || layer.name == "layer.0.add_2")
      sum += layer.kept_activations.value;
  return sum;
}

}  // namespace

TEST_CASE("selective and full recomputation keep what Korthikanti says, to 0.1 %") {
  // Korthikanti et al. 2022 (arXiv 2205.05198), Table 2 without tensor parallelism: 34 s b h and 2 s b h bytes.
  for (const Size& s : {Size{3, 1024, 16, 1024}, Size{3, 6144, 64, 2048}, Size{3, 25600, 160, 2048}}) {
    const Model model = gpt(s);
    const double sbh = 4.0 * s.sequence * s.hidden;
    INFO(s.hidden);
    CHECK(kept(trace_of(model, 4, "none")) == Approx(sbh * (34 + 5.0 * s.heads * s.sequence / s.hidden)).epsilon(1e-3));
    CHECK(kept(trace_of(model, 4, "selective")) == Approx(34 * sbh).epsilon(1e-3));
    CHECK(kept(trace_of(model, 4, "full")) == Approx(2 * sbh).epsilon(1e-3));
  }
}

TEST_CASE("tensor and sequence parallelism keep what Korthikanti says, to 0.1 %") {
  // The same table: s b h (10 + 24 / t + 5 a s / h t) bytes with a tensor axis of t, and all of it divided by t where
  // positions are divided too.
  for (const Size& s : {Size{3, 6144, 64, 2048}, Size{3, 12288, 96, 2048}, Size{3, 25600, 160, 2048}})
    for (const int t : {2, 8}) {
      INFO(s.hidden << " over " << t);
      const Model model = gpt(s);
      const auto divided = [&](const std::string& options) {
        const ConfigNode node = ConfigNode::load_text(options, "options");
        return builtin_bodies().make("tensor", node, node)->divide(DividedModel::whole(model), t, node);
      };
      const double sbh = 4.0 * s.sequence * s.hidden, scores = 5.0 * s.heads * s.sequence / s.hidden;
      CHECK(kept(trace_of(*divided("{}").part, 4, "none")) == Approx(sbh * (10 + (24 + scores) / t)).epsilon(1e-3));
      CHECK(kept(trace_of(*divided("{sequence_parallel: true}").part, 4, "none")) ==
            Approx(sbh * (34 + scores) / t).epsilon(1e-3));
    }
}

TEST_CASE("what is computed again is attention, or layers") {
  const Size s{4, 2048, 16, 1024};
  const Model model = gpt(s);
  const auto [flop, none] = product_flop(model, settings("none"));
  // Narayanan et al. 2021, appendix: 72 s l h^2 (1 + s / 6h + V / 12 l h) for a sample, forward and backward.
  const double h = s.hidden, q = s.sequence, l = s.layers;
  CHECK(flop == Approx(72 * q * l * h * h * (1 + q / (6 * h) + 51200 / (12 * l * h))).epsilon(1e-3));
  CHECK(none == 0);
  // Of a layer's 24 s h^2 + 4 s^2 h FLOP the latter, or all.
  CHECK(product_flop(model, settings("selective")).recomputed == Approx(l * 4 * q * q * h).epsilon(1e-3));
  CHECK(product_flop(model, settings("full")).recomputed == Approx(l * (24 * q * h * h + 4 * q * q * h)).epsilon(1e-3));
  CHECK(tokens_per_sample(model) == 1024);
}

}  // namespace epocast::activation_memory_test
