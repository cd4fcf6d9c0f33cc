// The fitted cost model: it returns what was measured, warns where nothing was, and refuses what it cannot know.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

#include "costmodels/compute_calibration.hpp"
#include "costmodels/fitted.hpp"
#include "costmodels/register.hpp"
#include "sim/data_file.hpp"
#include "tests/support/error_message.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::fitted_test {

using epocast::testing::message;

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;

Device device(double peak, double memory = 900e9) {
  Device out;
  out.name = "d0";
  out.peak_rate = FlopPerSecond(peak);
  out.memory_bandwidth = BytesPerSecond(memory);
  return out;
}

/// One of DeepBench's convolutions, 56x56x128 -> 256, 3x3, as a network's second layer so that its input needs a
/// gradient.
Model convolution_net(int channels = 128) {
  return parse_model("model: net\ninput: {channels: 3, height: 56, width: 56}\nlayers:\n  - {conv: first, filters: " +
                         std::to_string(channels) +
                         ", kernel: 3, padding: 1, bias: false}\n  - {conv: second, filters: 256, kernel: 3, padding: "
                         "1, bias: false}\n",
                     "net.yaml");
}

std::unique_ptr<CostModel> make(const std::string& compute, const Model& model, const Device& on) {
  return make_cost_model(ConfigNode::load_text(compute, "study.yaml"),
                         {.data_dir = kRoot, .model = &model, .device = &on});
}

ComputeCalibration small_calibration(bool both_gradients) {
  std::vector<KernelTiming> points;
  const auto add = [&](KernelPass pass, double time) {
    for (std::int64_t batch : {4, 8, 16})
      points.push_back({{ConvolutionShape{batch, 128, 56, 56, 256, 3, 3, 56, 56, 1, 1}, pass},
                        Seconds(time * static_cast<double>(batch)),
                        0});
  };
  add(KernelPass::forward, 1e-4);
  if (both_gradients) {
    add(KernelPass::backward, 3e-4);
  } else {
    add(KernelPass::backward_data, 1e-4);
    add(KernelPass::backward_weights, 2e-4);
  }
  ComputeCalibration out;
  out.device = "test";
  out.source = "test";
  out.rates = {FlopPerSecond(15.7e12), BytesPerSecond(900e9), 80};
  for (TestedFit& tested : fit_all(points, out.rates)) out.fits.push_back(std::move(tested.fit));
  return out;
}

}  // namespace

TEST_CASE("at a measured shape the fitted model gives nearly the measured time") {
  const Model net = convolution_net();
  const Device v100 = device(15.7e12);
  const auto cost = make("{cost_model: fitted, calibration: v100}", net, v100);
  const PassTimes times = cost->times(net.layers[2], 16, v100);
  // costmodels/measurements/v100.csv, n=16 c=128 h=56 w=56 k=256 r=3 s=3; interpolation smooths noise of a few percent
  CHECK(times.forward.value == Approx(0.0009).epsilon(0.15));
  CHECK(times.backward_data.value > 0);
  CHECK(times.backward_weights.value > 0);
  CHECK(times.update.value > 0);
  CHECK(cost->times(net.layers[0], 16, v100).total().value == 0);        // the input
  CHECK(cost->times(net.layers[1], 16, v100).backward_data.value == 0);  // nothing upstream is trained
  CHECK(times.forward > cost->times(net.layers[2], 8, v100).forward);
  CHECK(cost->caveats(16).empty());
}

TEST_CASE("a study is told of extrapolation, of another device and of scaled rates") {
  const Model net = convolution_net();
  const auto odd = convolution_net(7);
  const Device v100 = device(15.7e12);
  const auto far = make("{cost_model: fitted, calibration: v100}", odd, v100)->caveats(3000);
  REQUIRE(far.size() == 1);
  CHECK_THAT(far[0], Catch::Contains("extrapolated") && Catch::Contains("first"));
  const auto other = make("{cost_model: fitted, calibration: v100}", net, device(4e12))->caveats(16);
  REQUIRE(other.size() == 1);
  CHECK_THAT(other[0], Catch::Contains("NVIDIA V100"));
  const auto scaled = make("{cost_model: fitted, calibration: a100}", net, device(19.5e12, 1555e9))->caveats(16);
  REQUIRE(scaled.size() == 1);
  CHECK_THAT(scaled[0], Catch::Contains("scaled from 'v100'"));
  const auto faster = make("{cost_model: fitted, calibration: v100}", net, device(15.7e12, 1800e9))->caveats(16);
  REQUIRE(faster.size() == 1);
  CHECK_THAT(faster[0], Catch::Contains("memory of 900.0 GB/s") && Catch::Contains("memory_rate: 2 would"));
  CHECK(make("{cost_model: fitted, calibration: v100, memory_rate: 2}", net, device(15.7e12, 1800e9))
            ->caveats(16)
            .empty());
}

TEST_CASE("of a scaled calibration kernels reach the share of the nominal rates that it says") {
  const auto k80 = [](const std::string& efficiency) {
    const std::string folder = (kRoot / "costmodels/calibrations/").string();
    return read_compute_calibration(ConfigNode::load_text(
        "calibration: compute\ndevice: K\nsource: s\nprecision: fp32\nscaled_from: p100\nrates: {peak_rate: 4 TFLOP/s, "
        "memory_bandwidth: 200 GB/s, units: 13}\n" +
            efficiency,
        folder + "k.yaml"));
  };
  const ComputeCalibration nominal = k80(""), half = k80("efficiency: 0.5\n");
  CHECK(nominal.efficiency == 1);
  // So large that overhead does not matter.
  const KernelWork work =
      kernel_work({ConvolutionShape{256, 128, 56, 56, 256, 3, 3, 56, 56, 1, 1}, KernelPass::forward});
  const auto time = [&](const ComputeCalibration& of) {
    return of.find("convolution", KernelPass::forward)->time(work, of.rates);
  };
  CHECK(time(half) == Approx(2 * time(nominal)).epsilon(0.01));
  // Nominal rates are what the platform's are compared with.
  const Model net = convolution_net();
  const Device on = device(4e12, 200e9);
  CHECK(Fitted(half, "k", Optimizer::sgd, net, on).caveats(16).size() == 1);  // scaled, and no more
  CHECK_THAT(message([&] { k80("efficiency: 0\n"); }), Catch::Contains("k.yaml:7:13: efficiency"));
}

TEST_CASE("auto takes the kernels of a chip at its card's own rates") {
  const Model net = parse_model("model: mlp\ninput: {channels: 8192}\nlayers: [{fc: fc1, units: 8192}]\n", "mlp.yaml");
  Device large = device(19.5e12, 2039e9);
  large.model = Name("NVIDIA A100 SXM4 80GB");
  large.cores = 108;
  large.other_rates[Precision::bf16] = FlopPerSecond(312e12);
  const auto cost = [&](const Device& on) {
    return make_cost_model(ConfigNode::load_text("{cost_model: fitted, calibration: auto}", "study.yaml"),
                           {.data_dir = kRoot, .model = &net, .device = &on, .precision = Precision::bf16});
  };
  Device small = large;
  small.model = Name("NVIDIA A100 SXM4 40GB");
  small.memory_bandwidth = BytesPerSecond(1555e9);
  Device throttled = large;
  throttled.product_share = 0.5;
  const Layer& layer = net.layers[1];
  const PassTimes measured = cost(large)->times(layer, 8192, large);
  // An update only moves data; a product of this size only computes, but for its bias (4 % of the time).
  const PassTimes slower = cost(small)->times(layer, 8192, small);
  CHECK(slower.update / measured.update == Approx(2039.0 / 1555).epsilon(0.02));
  CHECK(slower.forward / measured.forward == Approx(1).epsilon(0.03));
  const PassTimes halved = cost(throttled)->times(layer, 8192, throttled);
  CHECK(halved.update == measured.update);
  CHECK(halved.forward / measured.forward > 1.7);  // the matrix units' input is as slow as before
  CHECK(halved.forward / measured.forward < 2);

  const auto says = [&](const Device& on, const std::string& text) {
    const std::vector<std::string> caveats = cost(on)->caveats(8192);
    return std::ranges::any_of(caveats, [&](const std::string& c) { return c.find(text) != std::string::npos; });
  };
  CHECK_FALSE(says(large, "scaled from"));
  for (const Device& other : {small, throttled}) {
    CHECK(says(other, "scaled from 'a100_bf16'"));
    CHECK_FALSE(says(other, "memory_rate"));
    CHECK_FALSE(says(other, "the platform's device has"));
  }
}

TEST_CASE("a convolution on matrix units takes at least its operations at the chip's peak") {
  const Model net = parse_model(
      "model: wide\ninput: {channels: 4096, height: 16, width: 16}\nlayers: [{conv: c1, filters: 4096, kernel: 1}, "
      "{conv: c2, filters: 4096, kernel: 1}]\n",
      "wide.yaml");
  Device card = device(67e12, 3350e9);
  card.model = Name("NVIDIA H100 SXM5 80GB");
  card.cores = 132;
  card.other_rates[Precision::bf16] = FlopPerSecond(989.4e12);
  const auto cost = make_cost_model(ConfigNode::load_text("{cost_model: fitted, calibration: h100_bf16}", "study.yaml"),
                                    {.data_dir = kRoot, .model = &net, .device = &card, .precision = Precision::bf16});
  const PassTimes times = cost->times(net.layers[2], 128, card);
  const double least = 2.0 * 4096 * 4096 * 256 * 128 / 989.4e12;
  for (const Seconds pass : {times.forward, times.backward_data, times.backward_weights}) CHECK(pass.value >= least);
}

TEST_CASE("a study in fp32 is told where frameworks would compute in tf32") {
  const Model net = convolution_net();
  Device card = device(19.5e12, 1555e9);
  card.other_rates[Precision::tf32] = FlopPerSecond(156e12);
  const auto caveats = make("{cost_model: fitted, calibration: a100}", net, card)->caveats(16);
  REQUIRE(caveats.size() == 2);
  CHECK_THAT(caveats[1], Catch::Contains("precision: tf32"));
  card.model = Name("NVIDIA RTX 3090");
  card.kernels_like = Name("NVIDIA A40");
  const auto refused = [&] { make("{cost_model: fitted, calibration: auto}", net, card); };
  CHECK_THAT(message(refused), Catch::Contains("NVIDIA RTX 3090 in fp32; set precision: tf32"));
  card.other_rates = {};
  CHECK_THAT(message(refused), !Catch::Contains("tf32"));
}

TEST_CASE("a profile of both gradients in one is halved; a missing operator is an error") {
  const Model net = convolution_net();
  const Device v100 = device(15.7e12);
  const Fitted cost(small_calibration(true), "mine", Optimizer::sgd, net, v100);
  const PassTimes times = cost.times(net.layers[2], 8, v100);
  CHECK(times.forward.value == Approx(8e-4).epsilon(0.05));
  CHECK(times.backward_data.value == Approx(12e-4).epsilon(0.05));
  CHECK(times.backward_data == times.backward_weights);
  const Model dense = parse_model("model: mlp\ninput: {channels: 100}\nlayers: [{fc: fc1, units: 10}]\n", "mlp.yaml");
  CHECK_THAT(message([&] { Fitted(small_calibration(false), "mine", Optimizer::sgd, dense, v100); }),
             Catch::Contains("'mine' has no forward times of operator gemm") && Catch::Contains("fc1"));
}

TEST_CASE("a calibration reads back as it was written, and every mistake in it has a place") {
  const ComputeCalibration before = small_calibration(false);
  const std::string text = to_yaml(before);
  const ComputeCalibration after = read_compute_calibration(ConfigNode::load_text(text, "c.yaml"));
  REQUIRE(after.fits.size() == before.fits.size());
  for (const KernelPass pass : {KernelPass::forward, KernelPass::backward_data, KernelPass::backward_weights}) {
    const KernelWork work = kernel_work({ConvolutionShape{12, 128, 28, 28, 256, 3, 3, 28, 28, 1, 1}, pass});
    CHECK(after.find("convolution", pass)->time(work, after.rates) ==
          Approx(before.find("convolution", pass)->time(work, before.rates)).epsilon(1e-4));
  }
  struct Mistake {
    std::string from, to, expected;
  };
  const std::vector<Mistake> mistakes{{"precision: fp32", "precision: fp61", "c.yaml:5:12: precision"},
                                      {"calibration: compute", "calibration: network", "must be 'compute'"},
                                      {"operator: convolution", "operator: convolutions", "did you mean 'convolution'"},
                                      {"n=4 c=128", "n=4 d=128", "fits[0].points[0]"},
                                      {"lengths: [", "lengths: [1, ", "must have 6 elements"},
                                      {"units: 80", "unit: 80", "units"},
                                      {"      overhead: ", "      over: ", "overhead"},
                                      {"amplitude: ", "amplitude: -", "amplitude"}};
  for (const Mistake& m : mistakes) {
    std::string wrong = text;
    REQUIRE(wrong.find(m.from) != std::string::npos);
    wrong.replace(wrong.find(m.from), m.from.size(), m.to);
    INFO(m.to);
    CHECK_THAT(message([&] { read_compute_calibration(ConfigNode::load_text(wrong, "c.yaml")); }),
               Catch::Contains(m.expected));
  }
}

TEST_CASE("every shipped fp32 calibration loads and times VGG-16, the others a GPT") {
  const Model vgg = load_model(kRoot / "workloads/models/vgg16.yaml");
  const Model gpt = load_model_named(
      ConfigNode::load_text("model: {name: gpt, hidden: 2048, layers: 8}", "study.yaml").at("model"), kRoot);
  int found = 0;
  for (const std::string& name : data_file_names(kRoot / "costmodels" / "calibrations", ".yaml")) {
    if (name.starts_with("allreduce_") || name.starts_with("collectives_") || name.starts_with("messages_")) continue;
    INFO(name);
    ++found;
    const std::string compute = "{cost_model: fitted, calibration: " + name + "}";
    const ComputeCalibration calibration =
        load_compute_calibration(kRoot / "costmodels" / "calibrations" / (name + ".yaml"));
    Device d = device(15.7e12);
    const Precision precision = calibration.rates.precision;
    if (precision == Precision::fp32) {
      const double step = make_trace(vgg, *make(compute, vgg, d), 32, d).compute_time().longest().value;
      CHECK(step > 0.02);  // 32 images of 3 x 31 GFLOP at 100 TFLOP/s take 0.03 s
      CHECK(step < 20);
      continue;
    }
    d.model = calibration.device;
    d.other_rates[precision] = calibration.rates.peak_rate;
    const auto cost = make_cost_model(ConfigNode::load_text(compute, "study.yaml"),
                                      {.data_dir = kRoot, .model = &gpt, .device = &d, .precision = precision});
    const WorkloadTrace trace = make_trace(gpt, *cost, 4, d, precision);
    double flop = 0, fastest = 0;
    for (const LayerTrace& layer : trace.layers) flop += layer.forward_flop.value + layer.backward_flop.value;
    fastest = flop / calibration.rates.peak_rate.value;
    // No device computes faster than its peak, nor, with products of this size, at less than a tenth of it.
    CHECK(trace.compute_time().longest().value > fastest);
    CHECK(trace.compute_time().longest().value < 10 * fastest);
    CHECK_THROWS_AS(make(compute, gpt, d), ConfigError);  // a study in fp32
  }
  CHECK(found >= 20);
}

}  // namespace epocast::fitted_test
