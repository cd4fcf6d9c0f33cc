// The longer of what host and device need, pass by pass, against the same worked out kernel by kernel.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "costmodels/corrected.hpp"
#include "costmodels/fitted.hpp"
#include "costmodels/host_launches.hpp"
#include "experiments/scenario.hpp"
#include "sim/cost_model.hpp"
#include "sim/recompute.hpp"
#include "tests/support/transformer.hpp"

namespace epocast::host_launches_test {

using namespace epocast::testing;

namespace {

/// Kernels of a pass as layers amount to them in half precision, by default.
double default_kernels(const Layer& layer, KernelPass pass) {
  double out = 0;
  for (const LayerKernel& kernel : layer_kernels(layer, 1, pass, kernel_style(Precision::bf16, true)))
    out += kernel.repeats;
  return out;
}

PassKernels default_kernels(const Layer& layer) {
  return {default_kernels(layer, KernelPass::forward), default_kernels(layer, KernelPass::backward_data),
          default_kernels(layer, KernelPass::backward_weights)};
}

class CountedRate final : public CostModel {
 public:
  PassTimes times(const Layer& layer, std::int64_t batch, const Device& device) const override {
    return FixedRate().times(layer, batch, device);
  }
  PassKernels kernels(const Layer& layer, std::int64_t /*batch*/) const override { return default_kernels(layer); }
};

const CountedRate kCost;

double sum(const WorkloadTrace& trace, DeviceTime LayerTimes::*pass) {
  double out = 0;
  for (const LayerTrace& layer : trace.layers) out += (layer.times.*pass).longest().value;
  return out;
}

WorkloadTrace trace_of(const Model& model) { return make_trace(model, kCost, 1, Device{}, Precision::fp16); }

/// Kernels of a forward pass.
double forward_kernels(const Model& model) {
  double out = 0;
  for (const Layer& layer : model.layers) out += kCost.kernels(layer, 1).forward;
  return out;
}

/// s of a forward pass of four samples on the device that the compute settings are of.
double forward_pass(const std::string& setting, const std::string& compute, const std::string& launch = "1 s") {
  const std::string text = "study: s\nworkers: 1\nstrategy: data_parallel\nbatch: {per_worker: 4}\n" + setting +
                           "\ncompute: {cost_model: " + compute + "}\nstack: {name: ideal, launch: " + launch + "}\n";
  const ScenarioSetup setup = read_scenario(parse_study(text, "study.yaml").scenarios.front(), builtin_registries());
  return sum(setup.trace(setup.phases.front().workers.front(), 4, {}), &LayerTimes::forward);
}

}  // namespace

TEST_CASE("a host that takes no time changes nothing") {
  const auto model = small_transformer(2);
  WorkloadTrace trace = trace_of(*model);
  const double before = sum(trace, &LayerTimes::forward);
  HostLaunches().apply(trace, *model, kCost);
  CHECK(sum(trace, &LayerTimes::forward) == before);
}

TEST_CASE("a slow host alone says how long passes take") {
  // One kernel takes the host 1 s, the device's last one a few ns: all kernels of the network, of batch and loss.
  const auto model = small_transformer(3);
  WorkloadTrace trace = trace_of(*model);
  HostLaunches(Seconds(1)).apply(trace, *model, kCost);
  const double kernels = forward_kernels(*model) + HostLaunches::kKernelsOfBatch + HostLaunches::kKernelsOfLoss;
  CHECK(sum(trace, &LayerTimes::forward) == Approx(kernels).epsilon(1e-6));
  double backward = 0;
  for (const Layer& layer : model->layers)
    for (const KernelPass pass : {KernelPass::backward_data, KernelPass::backward_weights})
      backward += default_kernels(layer, pass);
  CHECK(sum(trace, &LayerTimes::backward_data) + sum(trace, &LayerTimes::backward_weights) ==
        Approx(HostLaunches::kBackwardShare * backward).epsilon(1e-6));
}

TEST_CASE("a pass takes at least what either needs, and at most both; what takes no kernels stays as it was") {
  const auto model = small_transformer(4);
  for (const double launch : {1e-9, 3e-8, 1e-7, 1e-6}) {
    WorkloadTrace trace = trace_of(*model);
    const double device = sum(trace, &LayerTimes::forward);
    HostLaunches(Seconds(launch)).apply(trace, *model, kCost);
    const double both = sum(trace, &LayerTimes::forward);
    const double host =
        launch * (forward_kernels(*model) + HostLaunches::kKernelsOfBatch + HostLaunches::kKernelsOfLoss);
    CHECK(both >= std::max(device, host) * (1 - 1e-12));
    CHECK(both <= (device + host) * (1 + 1e-12));
  }
}

TEST_CASE("a second forward pass costs the host as much as the first") {
  const auto model = small_transformer(4);
  WorkloadTrace trace = trace_of(*model);
  apply_recompute(trace, {.segments = Recompute::Segments::blocks});
  HostLaunches(Seconds(1)).apply(trace, *model, kCost);
  double again = 0;
  for (std::size_t l = 0; l < trace.layers.size(); ++l)
    if (trace.layers[l].segment >= 0) again += default_kernels(model->layers[l]).forward;
  CHECK(sum(trace, &LayerTimes::recompute) == Approx(again).epsilon(1e-6));
  CHECK(again > 0.5 * forward_kernels(*model));
}

TEST_CASE("the host is the stack's, unless a study says it, or measured a step that contains it") {
  const auto forward = [](const std::string& compute, const std::string& launch) {
    return forward_pass("platform: dgx1_v100\nmodel: lenet", compute, launch);
  };
  // LeNet: two convolutions, two poolings, three products, activations and the loss; ten kernels for the batch, ten
  // more for the loss.
  const double stack = forward("fitted, calibration: v100", "0.5 s");
  CHECK(stack > 12.5);
  CHECK(forward("fitted, calibration: v100", "1 s") == Approx(2 * stack).epsilon(1e-3));
  CHECK(forward("fitted, calibration: v100, launch: 1 s", "0.5 s") == Approx(2 * stack).epsilon(1e-3));
  CHECK(forward("fitted, calibration: v100, launch: 0 s", "1 s") == forward("fitted, calibration: v100", "0 s"));
  CHECK(forward("fitted, calibration: v100, step_time: {batch: 4, time: 1 s}", "1 s") < 1);
  CHECK(forward("roofline", "1 s") < 1);  // which knows no kernels
}

TEST_CASE("a step that was measured contains launches, of smaller batches at the most as much as it takes") {
  // Passes of batches of a network whose step takes 1 s at 64 images.
  const auto passes = [](int batch, const std::string& launch) {
    const std::string text =
        "study: s\nworkers: 1\nstrategy: data_parallel\nbatch: {per_worker: " + std::to_string(batch) +
        "}\nplatform: dgx1_v100\nmodel: resnet50\nstack: {name: ideal, launch: " + launch +
        "}\ncompute: {cost_model: fitted, calibration: v100, step_time: {batch: 64, time: 1 s}}\n";
    const ScenarioSetup setup = read_scenario(parse_study(text, "study.yaml").scenarios.front(), builtin_registries());
    const WorkloadTrace trace = setup.trace(setup.phases.front().workers.front(), batch, {});
    return sum(trace, &LayerTimes::forward) + sum(trace, &LayerTimes::backward_data) +
           sum(trace, &LayerTimes::backward_weights);
  };
  CHECK(passes(64, "1 ms") == passes(64, "0 s"));
  CHECK(passes(128, "1 ms") == passes(128, "0 s"));
  CHECK(passes(63, "1 s") == Approx(passes(64, "0 s")));  // a host that slow was not what was measured
  double before = 0;
  for (const int batch : {1, 2, 8, 32, 63, 64}) {
    INFO(batch);
    const double with = passes(batch, "1 ms"), without = passes(batch, "0 s");
    CHECK(with >= without);
    CHECK(with >= before * (1 - 1e-9));
    CHECK(with <= passes(64, "0 s") * (1 + 1e-9));
    before = with;
  }
  // 53 convolutions, as many normalisations and a product at 1 ms each; at 0.3 ms the gradients of both tensors of
  // convolutions, but for the first one's input, and of the product, and one kernel for each normalisation.
  CHECK(passes(1, "1 ms") > 1e-3 * (107 + 0.3 * (105 + 53 + 2)));
  CHECK(passes(1, "0 s") < 0.1);
}

TEST_CASE("the host starts the kernels that a framework's choices make") {
  // By a host of 1 s for each kernel, beside which the device needs nothing: differences are numbers of kernels.
  const auto gpt = [](const std::string& choice) {
    return forward_pass("platform: dgx_h100\nprecision: bf16\nmodel: {name: gpt2, fused: false}",
                        "fitted, calibration: h100_bf16" + choice);
  };
  const double plain = gpt("");
  const int layers = 12;
  // In place of scores, softmax and sum: three copies of heads, scores, scale, mask, softmax, sum, a copy; or as many
  // copies, scores, softmax and sum.
  CHECK(gpt(", attention: eager") - plain == Approx(layers * (9 - 3)).margin(1e-3));
  CHECK(gpt(", attention: compiled") - plain == Approx(layers * (7 - 3)).margin(1e-3));
  // Eight operations in place of one kernel. Autocast: a cast behind each of two norms a layer, and the last; and two
  // in each eager GELU.
  CHECK(gpt(", gelu: eager") - plain == Approx(layers * (8 - 1)).margin(1e-3));
  CHECK(gpt(", autocast: true") - plain == Approx(2 * layers + 1).margin(1e-3));
  CHECK(gpt(", autocast: true, gelu: eager") - plain == Approx(2 * layers + 1 + layers * (10 - 1)).margin(1e-3));
  // ResNet-50's 49 ReLUs and 16 sums are in the kernels of normalisations.
  const auto resnet = [](const std::string& choice) {
    return forward_pass("platform: dgx1_v100\nmodel: resnet50", "fitted, calibration: v100, batch_norm: " + choice);
  };
  CHECK(resnet("separate") - resnet("fused") == Approx(49 + 16).margin(1e-3));
}

TEST_CASE("kernels are counted as they are timed") {
  const std::filesystem::path root = EPOCAST_SOURCE_DIR;
  const Model model = load_model_named(
      ConfigNode::load_text("model: {name: gpt2, layers: 1, fused: true, pairs: causal}", "study.yaml").at("model"),
      root);
  ComputeCalibration calibration = load_compute_calibration(root / "costmodels/calibrations/h100_bf16.yaml");
  const auto fitted = [&] { return Fitted(calibration, "c", Optimizer::adam, model, Device{}); };
  const auto attention = std::ranges::find(model.layers, LayerKind::attention, &Layer::kind);
  const Fitted whole = fitted();
  for (const Layer& layer : model.layers) {
    INFO(layer.name);
    const PassKernels counted = whole.kernels(layer, 1), expected = default_kernels(layer);
    CHECK(counted.forward == expected.forward);
    CHECK(counted.backward_data == expected.backward_data);
    CHECK(counted.backward_weights == expected.backward_weights);
  }
  CHECK(whole.kernels(*attention, 4).forward == 1);
  CHECK(whole.kernels(*attention, 4).backward_data == 1);
  // Without a fit of fused attention it is timed as products: scores and sum; backward each twice, the scores once
  // more.
  std::erase_if(calibration.fits, [](const KernelFit& fit) { return fit.family == "attention"; });
  CHECK(fitted().kernels(*attention, 4).forward == 2);
  CHECK(fitted().kernels(*attention, 4).backward_data == 5);
  // A factor on times is none on kernels.
  const Corrected corrected(std::make_unique<Fitted>(fitted()), model, {.scale = 2});
  CHECK(corrected.kernels(*attention, 4).forward == 2);
}

}  // namespace epocast::host_launches_test
