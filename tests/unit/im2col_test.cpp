// The im2col cost model: products as fitted, layouts and other layers at the speed of memory or of busy cores.
#include <catch2/catch.hpp>

#include "costmodels/compute_calibration.hpp"
#include "costmodels/register.hpp"
#include "workloads/model_reader.hpp"

namespace epocast::im2col_test {

namespace {

const std::filesystem::path kRoot = EPOCAST_SOURCE_DIR;
constexpr double kBandwidth = 136.5e9;  // of calibration haswell

Device node() {
  Device out;
  out.name = "node";
  out.cores = 32;
  out.peak_rate = FlopPerSecond(2.355e12);
  out.memory_bandwidth = BytesPerSecond(kBandwidth);
  return out;
}

/// 64 x 28 x 28 -> 3x3 -> 128 x 28 x 28 -> 1x1 -> 256 x 28 x 28, behind a first layer that makes their inputs need
/// gradients.
Model network() {
  return parse_model(
      "model: net\ninput: {channels: 3, height: 28, width: 28}\nlayers:\n"
      "  - {conv: first, filters: 64, kernel: 3, padding: 1}\n"
      "  - {conv: wide, filters: 128, kernel: 3, padding: 1}\n"
      "  - {conv: point, filters: 256, kernel: 1}\n  - relu\n"
      "  - {conv: up, filters: 32, kernel: 2, stride: 2, transposed: true}\n",
      "net.yaml");
}

PassTimes times(const std::string& extra, std::size_t layer, std::int64_t batch) {
  const Model model = network();
  const Device device = node();
  const ConfigNode compute = ConfigNode::load_text("{cost_model: im2col, calibration: haswell" + extra + "}", "study");
  return make_cost_model(compute, {.data_dir = kRoot, .model = &model, .device = &device})
      ->times(model.layers[layer], batch, device);
}

/// What the calibration says of C (m x n) = A (m x k) B (k x n).
double product(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
  const ComputeCalibration haswell = load_compute_calibration(kRoot / "costmodels" / "calibrations" / "haswell.yaml");
  return haswell.find("gemm", KernelPass::forward)
      ->time(kernel_work({GemmShape{m, n, k, ta, tb}, KernelPass::forward}), haswell.rates);
}

}  // namespace

TEST_CASE("a convolution is a product and a change of layout in each pass", "[im2col]") {
  // Two images: 1568 positions, columns of 64 x 9 = 576 values.
  constexpr double kLayout = 4.0 * (2 * 64 * 784 + 576 * 1568) / (0.8 * kBandwidth);
  const PassTimes wide = times("", 2, 2);
  CHECK(wide.forward.value == Approx(kLayout + product(128, 1568, 576, false, false)));
  CHECK(wide.backward_data.value == Approx(kLayout + product(576, 1568, 128, true, false)));
  CHECK(wide.backward_weights.value == Approx(kLayout + product(128, 576, 1568, false, true)));
  const PassTimes slower = times(", memory_efficiency: 0.4", 2, 2);
  CHECK(slower.forward.value - wide.forward.value == Approx(kLayout));
}

TEST_CASE("a 1x1 convolution needs no columns, the first layer no gradient of its input", "[im2col]") {
  CHECK(times("", 3, 2).forward.value == Approx(product(256, 1568, 128, false, false)));
  CHECK(times("", 1, 2).backward_data.value == 0);
}

TEST_CASE("a transposed convolution multiplies first and adds up its columns", "[im2col]") {
  // Each of 2 x 784 positions makes a column of 32 x 4 = 128 values; the output has 32 x 56 x 56.
  constexpr double kLayout = 4.0 * (2 * 32 * 3136 + 128 * 1568) / (0.8 * kBandwidth);
  const PassTimes up = times("", 5, 2);
  CHECK(up.forward.value == Approx(product(128, 1568, 256, true, false) + kLayout));
  CHECK(up.backward_data.value == Approx(kLayout + product(256, 1568, 128, false, false)));
  CHECK(up.backward_weights.value == Approx(kLayout + product(256, 128, 1568, false, true)));
}

TEST_CASE("loops over images use as many cores as there are images", "[im2col]") {
  // ReLU reads and writes 256 x 784 values an image.
  constexpr double kBytes = 4.0 * 2 * 256 * 784;
  CHECK(times(", core_bandwidth: 1 GB/s", 4, 2).forward.value == Approx(2 * kBytes / 2e9));
  CHECK(times(", core_bandwidth: 1 GB/s", 4, 64).forward.value == Approx(64 * kBytes / 32e9));
  // Beyond the memory's bandwidth more cores do not help.
  CHECK(times(", core_bandwidth: 100 GB/s", 4, 64).forward.value == Approx(times("", 4, 64).forward.value));
  // So do changes of layout: 64 x 784 values in, columns of 576 x 784 out, for each of two images on a core of its own.
  constexpr double kColumns = 4.0 * (64 * 784 + 576 * 784);
  CHECK(times(", core_bandwidth: 1 GB/s", 2, 2).forward.value ==
        Approx(kColumns / 1e9 + product(128, 2 * 784, 576, false, false)));
  CHECK(times(", core_bandwidth: 100 GB/s", 2, 2).forward.value == Approx(times("", 2, 2).forward.value));
  // Products use all cores.
  CHECK(times(", core_bandwidth: 1 GB/s", 3, 2).forward.value == Approx(times("", 3, 2).forward.value));
}

}  // namespace epocast::im2col_test
